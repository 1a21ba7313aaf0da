import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/bench/**', 'test/corpus/**', 'node_modules/**'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Most of them wait for a disk or for another process.
    maxWorkers: 2,
    coverage: { provider: 'v8', include: ['src/**/*.ts', 'jobs/**/*.ts'], reporter: ['text-summary'] },
  },
})
