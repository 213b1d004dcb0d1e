// Package message has the messages between the hub and its workers: the introduction of
// a worker, the messages to it, and the completion of a task.
package message
