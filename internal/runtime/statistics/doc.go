// Package statistics counts what becomes of questions, for people who want to know whether
// they keep up: by time, graph and group, and how the questions of a node were answered.
//
// The counts are in memory. They begin with the server, and are of what this server does.
package statistics
