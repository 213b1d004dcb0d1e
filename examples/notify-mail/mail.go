package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"net/textproto"
	"slices"
	"strings"
	"time"
)

// mailer sends mails through a mail server.
type mailer struct {
	relay, from    string
	user, password string
	others         []string // who get the mails of questions that name no mail address
	links          *linker  // nil = mails have no links
}

// sendTime bounds the sending of a mail: graphd waits 10 s.
const sendTime = 8 * time.Second

// sendMail sends the mail of an event to those whom the question names.
func (m *mailer) sendMail(ctx context.Context, e *event) error {
	to := m.findRecipients(e)
	if len(to) == 0 {
		return nil
	}
	if m.links == nil {
		return m.sendTo(ctx, e, to, "")
	}
	for _, person := range to { // a link is for one person
		url := ""
		if isNamed(e, person) {
			var err error
			if url, err = m.links.makeLink(ctx, e.Data.Interrupt.ThreadID, e.Subject, person); err != nil {
				slog.Warn("a mail without a link", "event", e.ID, "error", err) // the question may be answered already
			}
		}
		if err := m.sendTo(ctx, e, []string{person}, url); err != nil {
			return err
		}
	}
	return nil
}

// isNamed reports whether the question or its entry names a person by this very name, which is
// that of a caller.
func isNamed(e *event, person string) bool {
	q := &e.Data.Interrupt
	return slices.Contains(slices.Concat(e.Data.Entry.Users, q.People.Users, q.Assignees), person)
}

// sendTo sends a mail to some people, with a link unless it is "".
func (m *mailer) sendTo(ctx context.Context, e *event, to []string, url string) error {
	text, err := m.writeMail(e, to, url)
	if err != nil {
		return err
	}
	conn, err := (&net.Dialer{Timeout: sendTime}).DialContext(ctx, "tcp", m.relay)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(sendTime)); err != nil {
		return err
	}
	return m.deliver(conn, to, text)
}

// deliver gives a mail to the server on a connection.
func (m *mailer) deliver(conn net.Conn, to []string, text []byte) error {
	host, _, err := net.SplitHostPort(m.relay)
	if err != nil {
		return err
	}
	c, err := smtp.NewClient(conn, host)
	if err != nil {
		return err
	}
	defer c.Close()
	if ok, _ := c.Extension("STARTTLS"); ok {
		if err := c.StartTLS(&tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}); err != nil {
			return err
		}
	}
	if m.user != "" {
		if err := c.Auth(smtp.PlainAuth("", m.user, m.password, host)); err != nil { // refuses plain text
			return err
		}
	}
	if err := c.Mail(m.from); err != nil {
		return err
	}
	taken := 0
	for _, address := range to {
		refused := new(textproto.Error)
		switch err := c.Rcpt(address); {
		case errors.As(err, &refused) && refused.Code >= 500: // it would be refused again
			slog.Warn("no mail for one who was named", "error", err)
		case err != nil:
			return err
		default:
			taken++
		}
	}
	if taken == 0 {
		return c.Quit()
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	_, failed := w.Write(text)
	if err := errors.Join(failed, w.Close()); err != nil {
		return err
	}
	return c.Quit()
}

// findRecipients returns the mail addresses that an entry names, or else its question, or else the
// others.
func (m *mailer) findRecipients(e *event) []string {
	q := &e.Data.Interrupt
	for _, names := range [][]string{e.Data.Entry.Users, slices.Concat(q.People.Users, q.Assignees)} {
		if to := findAddresses(names); len(to) > 0 {
			return to
		}
	}
	return m.others
}

func findAddresses(names []string) (to []string) {
	for _, name := range names {
		if a, err := mail.ParseAddress(name); err == nil && !slices.Contains(to, a.Address) {
			to = append(to, a.Address)
		}
	}
	return to
}

// messageID returns the id of the mail of an event. Mail programs show a mail that came again once.
func messageID(event string) string {
	sum := sha256.Sum256([]byte(event))
	return "<" + hex.EncodeToString(sum[:16]) + "@graphd>"
}

// messageName names the mail of an event. A mail with a link is of one person.
func messageName(event string, to []string, url string) string {
	if url == "" {
		return event
	}
	return event + "/" + to[0]
}

// writeMail writes a mail.
func (m *mailer) writeMail(e *event, to []string, url string) ([]byte, error) {
	q := &e.Data.Interrupt
	var b bytes.Buffer
	for _, header := range [][2]string{
		{"From", m.from},
		{"To", strings.Join(to, ", ")},
		{"Subject", mime.QEncoding.Encode("utf-8", fmt.Sprintf("[%s] %s", q.Graph, firstLine(q.Message)))},
		{"Date", e.Time.Format(time.RFC1123Z)},
		{"Message-ID", messageID(messageName(e.ID, to, url))},
		{"MIME-Version", "1.0"},
		{"Content-Type", "text/plain; charset=utf-8"},
		{"Content-Transfer-Encoding", "quoted-printable"},
	} {
		fmt.Fprintf(&b, "%s: %s\r\n", header[0], header[1])
	}
	b.WriteString("\r\n")
	w := quotedprintable.NewWriter(&b)
	if url != "" {
		fmt.Fprintf(w, "%s\r\n\r\nTo answer, open this page. The link is for you alone:\r\n\r\n%s\r\n", q.Message, url)
		return b.Bytes(), w.Close()
	}
	fmt.Fprintf(w, "%s\r\n\r\nTo see it and to answer:\r\n\r\n    graphd inbox show %s --interrupt %s\r\n", q.Message, q.ThreadID, e.Subject)
	return b.Bytes(), w.Close()
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.TrimSpace(line)
	if runes := []rune(line); len(runes) > 80 {
		return string(runes[:80]) + "…"
	}
	return line
}
