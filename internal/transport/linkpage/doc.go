// Package linkpage serves the page that a link opens: one question with a form, over HTTP,
// for one person who needs no other credentials.
//
// Reading the page changes nothing, however often it is read. What a person sends becomes
// a call of the services of gRPC, in the name of the person of the link: the page decides
// nothing about who may answer.
package linkpage
