// Package client calls a server: it connects, repeats calls, and reads pages of
// lists.
package client
