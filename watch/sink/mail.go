// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"net/textproto"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/setpoint-io/setpoint/watch/event"
)

// Mail describes a sink that sends mails.
type Mail struct {
	// Server is the mail server, host:port. On port 465 the connection is encrypted from the
	// start, on others as soon as the server offers it.
	Server string `yaml:"server"`
	// From is the sender, To are the receivers: addresses, with or without a name.
	From string   `yaml:"from"`
	To   []string `yaml:"to"`
	// Subject is that of all mails. Default: setpoint watch.
	Subject string `yaml:"subject,omitempty"`
	// Username and PasswordFrom are for the server. Default: no login.
	Username     string    `yaml:"username,omitempty"`
	PasswordFrom SecretRef `yaml:"passwordFrom,omitempty"`
	// Template is the text of one event, as text/template has it, over a *event.Event.
	// Default: {{words .}}, a line that says what happened.
	Template string `yaml:"template,omitempty"`
}

func (m *Mail) check(report reporter) {
	if _, _, err := net.SplitHostPort(m.Server); err != nil {
		report.wrong("server", "%q is not a host and a port, such as mail.example.com:587", m.Server)
	}
	if _, err := mail.ParseAddress(m.From); err != nil {
		report.wrong("from", "%q is not an address", m.From)
	}
	if len(m.To) == 0 {
		report.wrong("to", "is empty; name at least one address")
	}
	for i, to := range m.To {
		if _, err := mail.ParseAddress(to); err != nil {
			report.wrong(fmt.Sprintf("to[%d]", i), "%q is not an address", to)
		}
	}
	if strings.ContainsAny(m.Subject, "\r\n") {
		report.wrong("subject", "has a line break")
	}
	switch {
	case m.Username != "":
		report.failed("passwordFrom", m.PasswordFrom.check())
	case !m.PasswordFrom.IsZero():
		report.wrong("username", "is empty, and there is a password")
	}
	_, err := m.template()
	report.failed("template", err)
}

func (m *Mail) reads() []Read { return []Read{{"passwordFrom", m.PasswordFrom}} }

func (m *Mail) batch() int { return 100 }

func (m *Mail) template() (*template.Template, error) {
	return parseTemplate(cmp.Or(m.Template, "{{words .}}"), MarkupNone)
}

func (m *Mail) sink(d Deps) (Sink, error) {
	made := &mailer{Mail: m, clock: d.clock, roots: d.roots, dial: d.dial}
	var err error
	if made.text, err = m.template(); err != nil {
		return nil, within("template", err)
	}
	if made.host, _, err = net.SplitHostPort(m.Server); err != nil {
		return nil, within("server", err)
	}
	if !m.PasswordFrom.IsZero() {
		if made.password, err = d.secret(m.PasswordFrom); err != nil {
			return nil, within("passwordFrom", err)
		}
		made.scrub.add(made.password.Reveal())
	}
	return made, nil
}

// mailer sends mails. All events of one Send are one mail, a line each.
type mailer struct {
	*Mail

	host     string
	password Secret
	text     *template.Template
	scrub    scrubber
	clock    func() time.Time
	roots    *x509.CertPool // nil: those of the system
	dial     func(ctx context.Context, address string) (net.Conn, error)
}

// Send sends one mail of all events.
func (m *mailer) Send(ctx context.Context, events []*event.Event) Result {
	var r Result
	var lines []string
	for _, e := range events {
		var line strings.Builder
		if err := m.text.Execute(&line, e); err != nil {
			// A Result is in order, so the events before this one are sent first.
			if len(lines) == 0 {
				r.refuse(fmt.Errorf("the template fails: %w", err))
				return r
			}
			break
		}
		lines = append(lines, strings.TrimSpace(line.String()))
	}
	switch err := m.deliver(ctx, m.message(events[0], strings.Join(lines, "\n"))); {
	case err == nil:
		r.Done = len(lines)
	case refusesMail(err):
		for range lines {
			r.refuse(fmt.Errorf("the mail server refused the mail: %s", m.scrub.clean(err.Error())))
		}
	default:
		r.Err = fmt.Errorf("the mail was not sent: %s", m.scrub.clean(err.Error()))
	}
	return r
}

// verdict is the answer of a server to a mail that it has read as a whole. Before that it answers to the connection, the
// account and the addresses, with the same codes: 554 may be a greeting, or that it relays no mail of this host.
type verdict struct{ error }

func (v verdict) Unwrap() error { return v.error }

// refusesMail reports whether the server will refuse the mail the next time as well. An account
// or an address can be corrected, so other refusals are tried again.
func refusesMail(err error) bool {
	var of verdict
	var answer *textproto.Error
	return errors.As(err, &of) && errors.As(of, &answer) && slices.Contains([]int{501, 552, 553, 554}, answer.Code)
}

// message returns the mail. Its ID is that of the first event, so that a mailbox can recognize a
// mail that is sent twice.
func (m *mailer) message(first *event.Event, text string) []byte {
	var to []string
	for _, t := range m.To {
		to = append(to, address(t).String())
	}
	var b strings.Builder
	for _, h := range [][2]string{
		{"From", address(m.From).String()},
		{"To", strings.Join(to, ", ")},
		{"Subject", mime.QEncoding.Encode("utf-8", cmp.Or(m.Subject, "setpoint watch"))},
		{"Date", m.clock().Format(time.RFC1123Z)},
		{"Message-ID", "<" + strings.Map(ofMessageID, first.ID) + "@setpoint.watch>"},
		{"MIME-Version", "1.0"},
		{"Content-Type", "text/plain; charset=utf-8"},
		{"Content-Transfer-Encoding", "quoted-printable"},
	} {
		fmt.Fprintf(&b, "%s: %s\r\n", h[0], h[1])
	}
	b.WriteString("\r\n")
	w := quotedprintable.NewWriter(&b)
	_, _ = w.Write([]byte(text + "\n")) // writing to a builder never fails
	_ = w.Close()
	return []byte(b.String())
}

func ofMessageID(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' {
		return r
	}
	return '-'
}

// implicitTLS is the port on which the connection is encrypted from the first byte.
// Source: https://www.rfc-editor.org/rfc/rfc8314#section-3.3.
const implicitTLS = "465"

// deliver sends a mail. A password is sent over an encrypted connection, or to this host, alone.
func (m *mailer) deliver(ctx context.Context, message []byte) error {
	conn, err := m.dial(ctx, m.Server)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	c, err := m.login(conn)
	if err != nil {
		return err
	}
	if err := c.Mail(address(m.From).Address); err != nil {
		return err
	}
	for _, to := range m.To {
		if err := c.Rcpt(address(to).Address); err != nil {
			return err
		}
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := w.Write(message); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return verdict{err}
	}
	_ = c.Quit() // the server has taken the mail
	return nil
}

// login greets the server, over TLS if it can be had, and sends the password.
func (m *mailer) login(conn net.Conn) (*smtp.Client, error) {
	config := &tls.Config{ServerName: m.host, MinVersion: tls.VersionTLS12, RootCAs: m.roots}
	if _, port, _ := net.SplitHostPort(m.Server); port == implicitTLS {
		conn = tls.Client(conn, config)
	}
	c, err := smtp.NewClient(conn, m.host)
	if err != nil {
		return nil, err
	}
	if offered, _ := c.Extension("STARTTLS"); offered {
		if err := c.StartTLS(config); err != nil {
			return nil, err
		}
	}
	if m.password.IsZero() {
		return c, nil
	}
	return c, c.Auth(smtp.PlainAuth("", m.Username, m.password.Reveal(), m.host))
}

// address returns an address that check has read before.
func address(text string) *mail.Address {
	a, err := mail.ParseAddress(text)
	if err != nil {
		return &mail.Address{Address: text}
	}
	return a
}

// Close does nothing: each mail has a connection of its own.
func (m *mailer) Close() error { return nil }
