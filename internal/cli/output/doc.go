// Package output shows what a server sent: as text at a terminal, where nothing that
// came from elsewhere can pass for graphd's own words, or as JSON for programs.
package output
