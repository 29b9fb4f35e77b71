// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"text/template"
	"time"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/format"
)

// The media types of CloudEvents.
// Source: https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md.
const (
	typeStructured = "application/cloudevents+json; charset=UTF-8"
	typeBatch      = "application/cloudevents-batch+json; charset=UTF-8"
)

// webhook sends events over HTTP.
type webhook struct {
	url     *url.URL
	headers http.Header
	key     Secret
	batch   bool
	objects bool
	source  string
	text    *template.Template // of the body; nil: CloudEvents
	clock   func() time.Time
	http    *http.Client
	scrub   scrubber
}

func (w *Webhook) sink(d Deps) (Sink, error) {
	made := &webhook{headers: http.Header{}, batch: w.Mode == ModeBatch, objects: w.Objects, source: w.Source, clock: d.clock}
	raw, field := w.URL, "url"
	if raw.IsZero() {
		field = "urlFrom"
		var err error
		if raw, err = d.secret(w.URLFrom); err != nil {
			return nil, within(field, err)
		}
	}
	var err error
	if made.url, err = parseURL(raw.Reveal()); err != nil {
		return nil, within(field, err)
	}
	made.scrub.addURL(made.url)
	if !w.SigningKey.IsZero() {
		if made.key, err = d.secret(w.SigningKey); err != nil {
			return nil, within("signingKey", err)
		}
		made.scrub.add(made.key.Reveal())
	}
	for i, h := range w.Headers {
		value := h.Value
		if value.IsZero() {
			value, err = d.secret(h.From)
			if err == nil {
				err = validHeaderValue(value)
			}
			if err != nil {
				return nil, within(fmt.Sprintf("headers[%d].from", i), err)
			}
		}
		made.headers.Add(h.Name, value.Reveal())
		made.scrub.add(value.Reveal())
	}
	if made.text, err = w.template(); err != nil {
		return nil, within("body", err)
	}
	transport, err := newTransport(w.CAFile)
	if err != nil {
		return nil, within("caFile", err)
	}
	made.http = &http.Client{Transport: transport, CheckRedirect: sameServer}
	return made, nil
}

func newTransport(caFile string) (*http.Transport, error) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if usual, ok := http.DefaultTransport.(*http.Transport); ok {
		transport = usual.Clone()
	}
	if caFile == "" {
		return transport, nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate in PEM", caFile)
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return transport, nil
}

// maxRedirects is how many redirects are followed in a row.
const maxRedirects = 3

// sameServer follows a redirect only within a server, and only if it keeps the method: after
// 301, 302 and 303 the client would send a GET without the event.
func sameServer(next *http.Request, via []*http.Request) error {
	first := via[0]
	if next.Method != first.Method || next.URL.Scheme != first.URL.Scheme || next.URL.Host != first.URL.Host || len(via) > maxRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

// Send sends events, each in a request or all in one.
func (w *webhook) Send(ctx context.Context, events []*event.Event) Result {
	var r Result
	for r.Done < len(events) {
		next := events[r.Done : r.Done+1]
		if w.batch {
			next = events[r.Done:]
		}
		if !w.sendSome(ctx, next, &r) {
			break
		}
	}
	return r
}

// sendSome sends the first of the events, as many as one request takes, and counts the result in
// r. It reports whether to go on.
func (w *webhook) sendSome(ctx context.Context, events []*event.Event, r *Result) bool {
	body, n, err := w.body(events)
	if n == 0 {
		r.refuse(err)
		return true
	}
	events = events[:n]
	answer := w.post(ctx, body)
	switch {
	case answer.err == nil:
		r.Done += n
	case !answer.final:
		r.Err, r.Wait = answer.err, answer.wait
		return false
	case n > 1 && answer.ofBody:
		// One of them may be the reason, so each half is sent by itself.
		for _, half := range [][]*event.Event{events[:n/2], events[n/2:]} {
			until := r.Done + len(half)
			for r.Done < until {
				if !w.sendSome(ctx, half[len(half)-(until-r.Done):], r) {
					return false
				}
			}
		}
	default:
		for range events {
			r.refuse(answer.err)
		}
	}
	return true
}

// body returns the body for the events before the first that cannot be encoded, and how many
// they are. The error is the one of that event.
func (w *webhook) body(events []*event.Event) (body []byte, n int, err error) {
	if w.text != nil {
		return w.message(events)
	}
	var list [][]byte
	for _, e := range events {
		data, failed := event.CloudEvent(format.Summarized(e), w.source, w.objects)
		if failed != nil {
			err = failed
			break
		}
		if !w.batch {
			return data, 1, nil
		}
		list = append(list, data)
	}
	body = append([]byte("["), bytes.Join(list, []byte(","))...)
	return append(body, ']'), len(list), err
}

// message is the body by the template. An event of which it makes no JSON is refused.
func (w *webhook) message(events []*event.Event) (body []byte, n int, err error) {
	var b bytes.Buffer
	err = w.text.Execute(&b, events)
	switch {
	case err == nil && json.Valid(b.Bytes()):
		return b.Bytes(), len(events), nil
	case len(events) > 1: // one of them may be the reason
		return w.message(events[:len(events)/2])
	case err == nil:
		err = errors.New("it is not JSON")
	}
	return nil, 0, fmt.Errorf("making the body of the template: %w", err)
}

// answer is the answer of a receiver.
type answer struct {
	err    error         // nil if it took the events
	final  bool          // the next attempt would have the same answer
	ofBody bool          // the body is the reason
	wait   time.Duration // until the next attempt, as Retry-After says
}

func (w *webhook) post(ctx context.Context, body []byte) answer {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url.String(), bytes.NewReader(body))
	if err != nil {
		return answer{err: errors.New("a request cannot be made of the URL"), final: true}
	}
	request.Header = w.headers.Clone()
	request.Header.Set("Content-Type", typeStructured)
	switch {
	case w.text != nil:
		request.Header.Set("Content-Type", "application/json; charset=UTF-8")
	case w.batch:
		request.Header.Set("Content-Type", typeBatch)
	}
	if request.Header.Get("User-Agent") == "" {
		request.Header.Set("User-Agent", "setpoint-watch")
	}
	if !w.key.IsZero() {
		request.Header.Set(SignatureHeader, Sign([]byte(w.key.Reveal()), w.clock(), body))
	}
	response, err := w.http.Do(request)
	if err != nil {
		return answer{err: w.unsent(err)}
	}
	defer response.Body.Close()
	if response.StatusCode >= 200 && response.StatusCode < 300 {
		drain(response.Body)
		return answer{}
	}
	return w.refusal(response)
}

// unsent returns the error of a request without an answer. The URL is not in it.
func (w *webhook) unsent(err error) error {
	if inner := (*url.Error)(nil); errors.As(err, &inner) {
		err = inner.Err
	}
	return errors.New("no answer: " + w.scrub.clean(err.Error()))
}

// readOfAnswer is how much of an answer is read, in bytes. What is secret in it may be longer than "(secret)".
const readOfAnswer = 4 * longest

// refusal says what an answer means that is not 2xx.
func (w *webhook) refusal(response *http.Response) answer {
	// The beginning is enough if the answer breaks off.
	said, _ := io.ReadAll(io.LimitReader(response.Body, readOfAnswer))
	text := fmt.Sprintf("the receiver answered %d", response.StatusCode)
	if name := http.StatusText(response.StatusCode); name != "" {
		text += " " + name
	}
	if said := w.scrub.clean(beginning(string(said), readOfAnswer)); said != "" {
		text += ": " + said
	}
	a := answer{err: errors.New(text)}
	switch code := response.StatusCode; {
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests, code >= 500:
		a.wait = retryAfter(response.Header.Get("Retry-After"), w.clock())
	case code >= 400:
		a.final = true
		a.ofBody = code == http.StatusBadRequest || code == http.StatusRequestEntityTooLarge ||
			code == http.StatusUnprocessableEntity || code == http.StatusConflict
	default:
		// Most often a proxy redirects to its login page.
		a.err = fmt.Errorf("%s, which is not followed: only 307 and 308 are, to the same server; set the URL that it leads to", text)
	}
	return a
}

// drain reads the rest of a short answer, for a second at most, so that the connection can be
// used again.
func drain(body io.ReadCloser) {
	late := time.AfterFunc(time.Second, func() { _ = body.Close() })
	defer late.Stop()
	_, _ = io.CopyN(io.Discard, body, 64<<10)
}

// Close closes the connections.
func (w *webhook) Close() error {
	w.http.CloseIdleConnections()
	return nil
}
