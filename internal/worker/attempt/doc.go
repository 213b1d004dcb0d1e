// Package attempt keeps the effects of one attempt of a task besides its result: the
// memos that it records, and the graphs that it calls.
package attempt
