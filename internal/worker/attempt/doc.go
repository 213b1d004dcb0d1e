// Package attempt keeps what an attempt of a task does besides its result: memos that it
// records, and graphs that it calls.
package attempt
