// Package output shows the data of a server: as text at a terminal, where no
// foreign text can pass for graphd's own, or as JSON for programs.
package output
