// Package coverage decides whether workers take a task, explains why not, and
// publishes the capabilities of the workers here to other servers.
package coverage
