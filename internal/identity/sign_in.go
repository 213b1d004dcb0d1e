package identity

// SignIn is what an issuer says of a person who has signed in.
type SignIn struct {
	Issuer string
	// Claims is a JSON object with the claims that name the principal, by their paths.
	Claims string
	// Session is the id that the issuer gives the person's session with it, "" = none.
	Session string
	// Nonce is what the sign-in was begun with.
	Nonce  string
	Caller Principal
}
