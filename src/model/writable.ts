/** The same without `readonly`, for building a value field by field. */
export type Writable<T> = { -readonly [Key in keyof T]: T[Key] }
