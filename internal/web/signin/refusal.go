package signin

import "net/http"

// reason is why a person is not signed in.
type reason int

const (
	reasonInternal reason = iota
	reasonNotBegun
	reasonIssuer
	reasonDenied
	reasonProvider
	reasonBusy
	reasonPerson
	reasonTooLarge
	reasonPath
	reasonNoWay
)

// refusal is what a person reads when the sign-in fails. It says no more than a person at a
// browser may know: the log has the cause, under the id of the request.
type refusal struct {
	Title string
	Text  string
	// Again says that another try may have another end.
	Again  bool
	status int
}

func newRefusal(why reason) refusal {
	switch why {
	case reasonNotBegun:
		return refusal{"Sign in again", "This sign-in was not begun in this browser, it took too long, or it was used before.", true, http.StatusBadRequest}
	case reasonIssuer:
		return refusal{"Sign in again", "The answer is not that of the identity provider of this server.", true, http.StatusBadRequest}
	case reasonDenied:
		return refusal{"Not signed in", "The identity provider has refused the sign-in.", true, http.StatusForbidden}
	case reasonProvider:
		return refusal{"Not signed in", "The identity provider does not answer as it should. Try again in a moment.", true, http.StatusBadGateway}
	case reasonBusy:
		return refusal{"Not signed in", "Too many people sign in at this moment. Try again in a moment.", true, http.StatusServiceUnavailable}
	case reasonPerson:
		return refusal{"Not signed in", "This server does not accept what the identity provider says of you. An operator finds the reason in the log.", false, http.StatusForbidden}
	case reasonTooLarge:
		return refusal{"Not signed in", "The identity provider says more of you than a session has room for, like many groups. An operator can have it say less.", false, http.StatusForbidden}
	case reasonPath:
		return refusal{"No such page", "A sign-in leads to a page of this server alone.", false, http.StatusBadRequest}
	case reasonNoWay:
		return refusal{"No sign-in", "Nobody signs in through an identity provider at this server.", false, http.StatusNotFound}
	case reasonInternal:
	}
	return refusal{"Not signed in", "The server failed in this request.", true, http.StatusInternalServerError}
}

// refusalPolicy lets the page load nothing.
const refusalPolicy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

const refusalPage = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<title>{{.Title}}</title></head>
<body><h1>{{.Title}}</h1><p>{{.Text}}</p>
<p>{{if .Again}}<a href="` + PathSignIn + `">Sign in again</a> · {{end}}<a href="/">To the page</a></p>
<p><small>Request {{.ID}}</small></p></body></html>
`

// showRefusal answers with the page of a refusal.
func (v *visit) showRefusal(why reason) {
	r := newRefusal(why)
	header := v.w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", refusalPolicy)
	v.w.WriteHeader(r.status)
	_ = v.page.Execute(v.w, struct { // the browser has left
		refusal

		ID string
	}{r, v.id})
}
