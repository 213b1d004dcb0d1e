// Package message has the words between the hub and its workers: how a worker introduces
// itself, what it is sent, and how it ends a task.
package message
