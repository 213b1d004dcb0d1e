// Package listing has the common parts of the methods that list things: filters and
// their queries, the sizes of pages, and page tokens.
package listing
