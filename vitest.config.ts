import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/bench/**', 'test/corpus/**', 'node_modules/**'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Most of them wait for a disk or for another process.
    maxWorkers: 2,
    // The files share the modules of their worker: nothing of ours keeps state in a module but caches of what never changes, and
    // loading everything anew for each file took a fifth of the time.
    isolate: false,
    restoreMocks: true,
    coverage: { provider: 'v8', include: ['src/**/*.ts', 'jobs/**/*.ts'], reporter: ['text-summary'] },
  },
})
