// Package codec says which fields a record of a store has, and which number each of
// them has. How they stand in bytes is the business of package packed.
package codec

// MaxInlineBytes is the size in bytes up to which the value of a channel stands in
// the checkpoint's record; a larger value is stored beside it.
const MaxInlineBytes = 128
