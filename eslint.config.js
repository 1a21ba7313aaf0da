import tseslint from 'typescript-eslint'

export default tseslint.config(
  { ignores: ['dist/', 'node_modules/', 'coverage/', 'test/corpus/'] },
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { project: './tsconfig.test.json' } },
    rules: {
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/no-unnecessary-condition': ['error', { allowConstantLoopConditions: 'only-allowed-literals' }],
    },
  },
  {
    files: ['src/**/*.ts', 'jobs/**/*.ts'],
    ignores: ['src/cli/**'],
    rules: {
      'no-restricted-globals': ['error', { name: 'console', message: 'The library never prints.' }],
      'no-restricted-properties': [
        'error',
        { object: 'process', property: 'env', message: 'Pass the environment in.' },
        { object: 'process', property: 'exit', message: 'The library never exits.' },
        { object: 'Date', property: 'now', message: 'Pass the clock in.' },
      ],
    },
  },
)
