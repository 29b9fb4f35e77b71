// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime/quotedprintable"
	"net"
	"net/http/httptest"
	"net/mail"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/observe"
	"github.com/setpoint-io/setpoint/watch/sink"
)

// inbox is what people have been sent. It can be told to be in trouble, or busy.
type inbox struct {
	mu      sync.Mutex
	letters []letter
	trouble int           // how many of the next messages fail
	failed  int           // how many have
	begun   chan struct{} // something arrives here when a message does
	busy    chan struct{} // nil, or what each message waits for
	answer  string        // to a message in trouble
	deaf    string        // the command, or the greeting, that has this answer instead; "": the message
	tls     *tls.Config   // that STARTTLS offers; nil: it is not offered
	quiet   bool          // sessions may break off
}

type letter struct{ from, to, title, text string }

// newInbox returns an inbox that is in trouble for so many messages.
func newInbox(trouble int) *inbox {
	return &inbox{trouble: trouble, answer: "451 4.3.0 the disk is full", begun: make(chan struct{}, 100)}
}

// take takes a message, and reports whether it did.
func (i *inbox) take(l letter) bool {
	i.begun <- struct{}{}
	if i.busy != nil {
		<-i.busy
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.trouble > 0 {
		i.trouble--
		i.failed++
		return false
	}
	i.letters = append(i.letters, l)
	return true
}

func (i *inbox) got() []letter {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.letters)
}

func (i *inbox) texts() []string {
	var all []string
	for _, l := range i.got() {
		all = append(all, l.text)
	}
	return all
}

const (
	password = "hunter22"
	greeting = "the greeting" // a line that no client sends, see inbox.deaf
)

// mailServer takes mails of clients that know the password, in plain text. It returns its address.
func (i *inbox) mailServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	i.serve(t, listener)
	return listener.Addr().String()
}

// serve takes mails until the test ends.
func (i *inbox) serve(t *testing.T, listener net.Listener) {
	t.Helper()
	var sessions sync.WaitGroup
	sessions.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // the test is over
			}
			sessions.Go(func() {
				if err := i.session(conn); err != nil && !i.quiet {
					t.Error("a session with the mail server:", err)
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		sessions.Wait()
	})
}

// session speaks SMTP until the client has nothing more to say.
func (i *inbox) session(conn net.Conn) error {
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	c := textproto.NewConn(conn)
	defer c.Close()
	say := func(lines ...string) { _ = c.PrintfLine("%s", strings.Join(lines, "\r\n")) }
	if i.deaf == greeting {
		say(i.answer)
		return nil
	}
	say("220 mail.example.com")
	var l letter
	known := false
	for {
		line, err := c.ReadLine()
		if errors.Is(err, io.EOF) { // the client has heard what it wanted
			return nil
		}
		if err != nil {
			return err
		}
		_, encrypted := conn.(*tls.Conn)
		switch command, rest, _ := strings.Cut(line, " "); {
		case command == "EHLO" && i.tls != nil && !encrypted:
			say("250-mail.example.com", "250 STARTTLS")
		case command == "STARTTLS":
			say("220 go on")
			conn = tls.Server(conn, i.tls)
			c = textproto.NewConn(conn)
		case command == "EHLO":
			say("250-mail.example.com", "250 AUTH PLAIN")
		case command == "AUTH" && i.deaf != "AUTH":
			if known = rest == "PLAIN AG1lAGh1bnRlcjIy"; !known { // \0me\0hunter22
				say("535 who are you?")
				continue
			}
			say("235 welcome")
		case command == "QUIT":
			say("221 bye")
			return nil
		case command == i.deaf:
			say(i.answer)
		case !known:
			say("530 who are you?")
		case command == "MAIL":
			l = letter{from: address(rest)}
			say("250 yes")
		case command == "RCPT":
			l.to = address(rest)
			say("250 yes")
		case command == "DATA":
			say("354 go on")
			if err := l.read(c.DotReader()); err != nil {
				return err
			}
			if !i.take(l) {
				say(i.answer)
				continue
			}
			say("250 taken")
		default:
			say("502 no " + command)
		}
	}
}

// address returns what is between < and >.
func address(text string) string {
	_, text, _ = strings.Cut(text, "<")
	text, _, _ = strings.Cut(text, ">")
	return text
}

// read reads a mail.
func (l *letter) read(from io.Reader) error {
	m, err := mail.ReadMessage(from)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	l.title, l.text = m.Header.Get("Subject"), strings.TrimSuffix(strings.ReplaceAll(string(body), "\r\n", "\n"), "\n")
	return err
}

// mailing runs a sink as a watch does, with hardly a pause.
func mailing(t *testing.T, i *inbox) *bench {
	t.Helper()
	o := sink.Options{Mail: &sink.Mail{
		Server: i.mailServer(t), From: "Watch <watch@example.com>", To: []string{"team@example.com"}, Subject: "prod-eu ü",
		Username: "me", PasswordFrom: sink.SecretRef{Env: "MAIL"},
	}, Delivery: sink.Delivery{MinWait: time.Millisecond, MaxWait: 5 * time.Millisecond}}
	s, err := sink.New("mail", o, sink.Deps{Secret: secrets(map[string]string{"MAIL": password + "\n"})})
	if err != nil {
		t.Fatal(err)
	}
	return run(t, s, o.Effective())
}

// drained waits until nothing waits to be sent.
func (b *bench) drained(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := b.Drained(ctx); err != nil {
		t.Fatalf("not all is sent: %v; %+v", err, b.Status())
	}
}

// scaled is what a watch makes of a Deployment that somebody scales.
func scaled(name string, from, to int64) *event.Event {
	o := observe.New(observe.Options{Kind: event.Kind{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespaced: true}})
	state := func(version string, replicas int64) map[string]any {
		return map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"namespace": "team-a", "name": name, "uid": name, "resourceVersion": version},
			"spec":     map[string]any{"replicas": replicas},
		}
	}
	return o.Event(observe.Change{Verb: event.Updated, Old: state("1", from), New: state("2", to)})
}

// renewed is what a watch makes of a Secret with another password.
func renewed() *event.Event {
	o := observe.New(observe.Options{Kind: event.Kind{Version: "v1", Kind: "Secret", Resource: "secrets", Namespaced: true}})
	state := func(version, password string) map[string]any {
		return map[string]any{
			"apiVersion": "v1", "kind": "Secret",
			"metadata": map[string]any{"namespace": "team-a", "name": "login", "uid": "login", "resourceVersion": version},
			"data":     map[string]any{"password": password},
		}
	}
	return o.Event(observe.Change{Verb: event.Updated, Old: state("1", "Y2FuYXJ5LTE="), New: state("2", "Y2FuYXJ5LTI=")}) // canary-1, -2
}

func TestPeopleAreMailedWhatChanged(t *testing.T) {
	i := newInbox(0)
	b := mailing(t, i)
	for _, e := range []*event.Event{scaled("web", 1, 3), renewed()} {
		b.put(t, e)
		b.drained(t) // one at a time: nothing waits together
	}
	var want []letter
	for _, text := range []string{"Deployment team-a/web updated: replicas 1 → 3", "Secret team-a/login updated: data.password changed"} {
		want = append(want, letter{from: "watch@example.com", to: "team@example.com", title: "=?utf-8?q?prod-eu_=C3=BC?=", text: text})
	}
	if got := i.got(); !slices.Equal(got, want) {
		t.Errorf("they got\n%q\nwant\n%q", got, want)
	}
	b.silent(t)
}

// silent wants no secret in what was logged, and nothing else of importance.
func (b *bench) silent(t *testing.T) {
	t.Helper()
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	for _, secret := range []string{password, "canary", "Y2FuYXJ5"} {
		if bytes.Contains(b.log.Bytes(), []byte(secret)) {
			t.Errorf("%s is in the log:\n%s", secret, b.log)
		}
	}
}

func TestWhatWaitsTogetherIsOneMailALineEach(t *testing.T) {
	i := newInbox(0)
	i.busy = make(chan struct{})
	free := sync.OnceFunc(func() { close(i.busy) })
	t.Cleanup(free) // the server ends before that otherwise
	b := mailing(t, i)
	b.put(t, scaled("web-0", 1, 2))
	<-i.begun
	var lines []string
	for n := range 30 { // while the first mail is on its way
		name := fmt.Sprintf("web-%d", n+1)
		b.put(t, scaled(name, 1, 2))
		lines = append(lines, "Deployment team-a/"+name+" updated: replicas 1 → 2")
	}
	free()
	b.drained(t)
	want := []string{"Deployment team-a/web-0 updated: replicas 1 → 2", strings.Join(lines, "\n")}
	if got := i.texts(); !slices.Equal(got, want) {
		t.Errorf("they got\n%q\nwant\n%q", got, want)
	}
}

func TestMailsAreSentInTheEndWhenTheServerWasInTrouble(t *testing.T) {
	const times = 3
	i := newInbox(times)
	b := mailing(t, i)
	b.put(t, scaled("web", 1, 3))
	b.drained(t)
	if got := i.texts(); !slices.Equal(got, []string{"Deployment team-a/web updated: replicas 1 → 3"}) || i.failed != times {
		t.Errorf("after %d failures they got %q", i.failed, got)
	}
	b.silent(t)
	if s := b.Status(); s.Retried != times || s.Sent != 1 || s.Refused != 0 || s.Dropped != 0 || s.InTrouble() {
		t.Errorf("%+v", s)
	}
	if !strings.Contains(b.log.String(), "the mail was not sent") || !strings.Contains(b.log.String(), "the disk is full") {
		t.Errorf("the trouble is not in the log:\n%s", b.log)
	}
}

// A mail that the server does not want is refused for good; an account, an address or a server that is wrong can be mended.
func TestWhatAnswersOfAMailServerMean(t *testing.T) {
	for _, c := range []struct {
		to, answer string
		refused    bool
	}{
		{"", "554 no", true},
		{"", "552 too large", true},
		{"", "451 later", false},
		{"", "535 no", false},
		{greeting, "554 this host is not served", false},
		{"AUTH", "501 what?", false},
		{"MAIL", "553 not from you", false},
		{"RCPT", "554 5.7.1 <b@example.com>: Relay access denied", false},
		{"DATA", "554 no valid receivers", false},
	} {
		i := newInbox(1)
		i.deaf, i.answer = c.to, c.answer
		i.quiet = c.to != "" // the client goes
		o := sink.Options{Mail: &sink.Mail{
			Server: i.mailServer(t), From: "a@example.com", To: []string{"b@example.com"}, Username: "me", PasswordFrom: sink.SecretRef{Env: "MAIL"},
		}}
		s, err := sink.New("mail", o, sink.Deps{Secret: secrets(map[string]string{"MAIL": password})})
		if err != nil {
			t.Fatal(err)
		}
		r := s.Send(t.Context(), []*event.Event{made(1), made(2)})
		if c.refused != (len(r.Refused) == 2 && r.Done == 2) || c.refused == (r.Err != nil) {
			t.Errorf("%s to %q: %+v", c.answer, c.to, r)
		}
		if r.Err != nil && !strings.Contains(r.Err.Error(), c.answer[:3]) {
			t.Errorf("%s to %q is not said: %v", c.answer, c.to, r.Err)
		}
	}
}

// secure returns the configuration of a server whose certificate is for example.com, and the
// certificates that a client must know.
func secure(t *testing.T) (*tls.Config, *x509.CertPool) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return &tls.Config{Certificates: server.TLS.Certificates, MinVersion: tls.VersionTLS12}, roots
}

// mailOver sends a mail to a server by its address, in place of the one that is configured.
func mailOver(t *testing.T, configured, address string, roots *x509.CertPool) sink.Result {
	t.Helper()
	o := sink.Options{Mail: &sink.Mail{
		Server: configured, From: "a@example.com", To: []string{"b@example.com"}, Username: "me", PasswordFrom: sink.SecretRef{Env: "MAIL"},
	}}
	dial := func(ctx context.Context, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	s, err := sink.New("mail", o, sink.Deps{Secret: secrets(map[string]string{"MAIL": password})}.With(nil, roots, dial))
	if err != nil {
		t.Fatal(err)
	}
	return s.Send(t.Context(), []*event.Event{made(1)})
}

func TestMailsAreSentOverTLS(t *testing.T) {
	config, roots := secure(t)
	for name, c := range map[string]struct {
		server, said string
		roots        *x509.CertPool
		wrapped      bool // TLS from the first byte
	}{
		"from the first byte":                    {server: "example.com:465", roots: roots, wrapped: true},
		"after STARTTLS":                         {server: "example.com:587", roots: roots},
		"from the first byte, unknown authority": {server: "example.com:465", roots: x509.NewCertPool(), wrapped: true, said: "certificate"},
		"after STARTTLS, unknown authority":      {server: "example.com:587", roots: x509.NewCertPool(), said: "certificate"},
		"after STARTTLS, another name":           {server: "mail.example.org:587", roots: roots, said: "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			i := newInbox(0)
			i.quiet = c.said != "" // the client ends the handshake
			address := listener.Addr().String()
			if c.wrapped {
				listener = tls.NewListener(listener, config)
			} else {
				i.tls = config
			}
			i.serve(t, listener)
			r := mailOver(t, c.server, address, c.roots)
			switch {
			case c.said == "" && (r.Err != nil || r.Done != 1 || len(i.got()) != 1):
				t.Errorf("%+v, they got %q", r, i.got())
			case c.said != "" && (r.Err == nil || !strings.Contains(r.Err.Error(), c.said) || len(i.got()) != 0):
				t.Errorf("%+v, they got %q", r, i.got())
			}
		})
	}
}

// Without TLS the password stays here.
func TestAPasswordIsNotSentInPlainTextToAnotherHost(t *testing.T) {
	i := newInbox(0)
	r := mailOver(t, "mail.example.com:25", i.mailServer(t), nil)
	if r.Err == nil || !strings.Contains(r.Err.Error(), "unencrypted connection") || len(i.got()) != 0 {
		t.Errorf("%+v, they got %q", r, i.got())
	}
}
