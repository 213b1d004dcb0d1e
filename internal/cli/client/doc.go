// Package client calls a server: connection, repeated attempts, pages of lists.
package client
