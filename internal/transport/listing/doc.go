// Package listing is what the methods that list things have in common: filters and the
// queries they stand for, the sizes of pages, and the tokens that lead to the next one.
package listing
