// Package flow bounds the memory that clients make the server hold: requests that
// arrive and are served, messages once they are decoded, and answers that clients
// do not read. It counts bytes by call and by connection. Beyond a limit it first
// refuses or closes those that hold the most for the longest time.
package flow
