// Package flow bounds what clients make the server hold: requests that arrive and are
// served, the memory that a message takes once it is decoded, and answers that clients
// do not read. It counts bytes by call and by connection; beyond a limit, those who hold
// the most for the longest time are the first to be refused or closed.
package flow
