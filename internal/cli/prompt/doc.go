// Package prompt asks a person at a terminal.
package prompt
