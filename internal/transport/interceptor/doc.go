// Package interceptor wraps every call of the server. It gives the call an id and a
// record, counts and logs it, bounds and checks its messages, and turns its error
// into a status. Services add the thread and the run of a call to its record.
package interceptor
