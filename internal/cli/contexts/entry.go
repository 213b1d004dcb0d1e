package contexts

// Entry is what is shown of a context: everything but its token.
type Entry struct {
	Name      string `json:"name"`
	IsCurrent bool   `json:"current"`
	Server    string `json:"server"`
	TLS       bool   `json:"tls"` // calls use TLS
	TLSCA     string `json:"tlsCa,omitempty"`
	TLSCert   string `json:"tlsCert,omitempty"`
	TLSKey    string `json:"tlsKey,omitempty"`
	HasToken  bool   `json:"hasToken"`
	TokenFile string `json:"tokenFile,omitempty"`
	Tenant    string `json:"tenant,omitempty"`
}

// ListEntries returns what is shown of all contexts, in their order.
func (l *List) ListEntries() []Entry {
	all := []Entry{}
	for i := range l.Contexts {
		all = append(all, l.DescribeContext(&l.Contexts[i]))
	}
	return all
}

// DescribeContext returns what is shown of a context.
func (l *List) DescribeContext(c *Context) Entry {
	return Entry{
		Name: c.Name, IsCurrent: c.Name == l.Current, Server: c.Server, TLS: c.Security().UsesTLS(),
		TLSCA: c.TLSCA, TLSCert: c.TLSCert, TLSKey: c.TLSKey, HasToken: c.Token != "" || c.TokenFile != "", TokenFile: c.TokenFile,
		Tenant: c.Tenant,
	}
}
