// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"cmp"
	"context"
	"crypto/tls"
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

// mailer sends mails. All events of one Send are one mail, a line each.
type mailer struct {
	Mail

	host     string
	password Secret
	text     *template.Template
	scrub    scrubber
	clock    func() time.Time
}

func newMail(o Mail, d Deps) (Sink, error) {
	m := &mailer{Mail: o, clock: d.Clock}
	var err error
	if m.text, err = o.template(); err != nil {
		return nil, within("template", err)
	}
	if m.host, _, err = net.SplitHostPort(o.Server); err != nil {
		return nil, within("server", err)
	}
	if !o.PasswordFrom.IsZero() {
		if m.password, err = d.secret(o.PasswordFrom); err != nil {
			return nil, within("passwordFrom", err)
		}
		m.scrub.add(m.password.Reveal())
	}
	return m, nil
}

// Send sends one mail of all events.
func (m *mailer) Send(ctx context.Context, events []*event.Event) Result {
	var r Result
	var lines []string
	for _, e := range events {
		var line strings.Builder
		if err := m.text.Execute(&line, e); err != nil {
			// Result is in order: what is before is sent first.
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

// refusesMail reports whether the server will refuse the mail the next time as well. What is
// wrong with the account or an address can be mended, so it is tried again.
func refusesMail(err error) bool {
	var answer *textproto.Error
	return errors.As(err, &answer) && slices.Contains([]int{501, 552, 553, 554}, answer.Code)
}

// message returns the mail. Its ID is that of the first event, so that a mailbox can tell what
// is sent twice.
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

// deliver sends a mail. A password is sent over an encrypted connection alone.
func (m *mailer) deliver(ctx context.Context, message []byte) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", m.Server)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	config := &tls.Config{ServerName: m.host, MinVersion: tls.VersionTLS12}
	if _, port, _ := net.SplitHostPort(m.Server); port == "465" { // TLS from the first byte: RFC 8314
		conn = tls.Client(conn, config)
	}
	c, err := smtp.NewClient(conn, m.host)
	if err != nil {
		return err
	}
	if offered, _ := c.Extension("STARTTLS"); offered {
		if err := c.StartTLS(config); err != nil {
			return err
		}
	}
	if !m.password.IsZero() {
		if err := c.Auth(smtp.PlainAuth("", m.Username, m.password.Reveal(), m.host)); err != nil {
			return err
		}
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
		return err
	}
	_ = c.Quit() // the server has taken the mail
	return nil
}

// address returns an address that Validate has read before.
func address(text string) *mail.Address {
	a, err := mail.ParseAddress(text)
	if err != nil {
		return &mail.Address{Address: text}
	}
	return a
}

// Close does nothing: each mail has a connection of its own.
func (m *mailer) Close() error { return nil }
