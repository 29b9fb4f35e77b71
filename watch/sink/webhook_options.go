// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/util/validation"
)

// The modes of a webhook.
const (
	// ModeStructured sends each event in a request of its own.
	ModeStructured = "structured"
	// ModeBatch sends as many events in a request as wait, up to Delivery.Batch.
	ModeBatch = "batch"
)

// Webhook describes a sink that sends events over HTTP: as CloudEvents, or in the body of a
// template.
type Webhook struct {
	// URL is where to, http or https. It is treated as a secret, since many have a token
	// in their path.
	URL Secret `yaml:"url,omitempty"`
	// URLFrom says where the URL is, instead of URL.
	URLFrom SecretRef `yaml:"urlFrom,omitempty"`
	// Mode is structured or batch. Default: structured.
	Mode string `yaml:"mode,omitempty"`
	// Objects says whether the whole objects are sent with the events.
	Objects bool `yaml:"objects,omitempty"`
	// Source is the source of the CloudEvents: a URI, or the name of the cluster.
	Source string `yaml:"source,omitempty"`
	// SigningKey says where the key is that requests are signed with. Default: not signed.
	SigningKey SecretRef `yaml:"signingKey,omitempty"`
	// Headers are sent with each request.
	Headers []Header `yaml:"headers,omitempty"`
	// CAFile is a file of certificates, in PEM, that the server's is checked against
	// instead of those of the system. There is no way to switch the check off.
	CAFile string `yaml:"caFile,omitempty"`
	// Body is a template of the request's body, which must make JSON, over the events in it:
	// one, or several in mode batch. Default: CloudEvents.
	Body string `yaml:"body,omitempty"`
	// Markup is what the receiver acts on in a text, so that words and escape in Body can
	// escape it: markdown, slack, plain or none. Default: markdown.
	Markup string `yaml:"markup,omitempty"`
}

// check looks nothing up: what URLFrom names is read when the sink is made.
func (w *Webhook) check(report reporter) {
	switch {
	case !w.URL.IsZero():
		_, err := parseURL(w.URL.Reveal())
		report.failed("url", err)
		if !w.URLFrom.IsZero() {
			report.wrong("urlFrom", "there is a url as well; set one of them")
		}
	case w.URLFrom.IsZero():
		report.wrong("url", "is empty; set it, or urlFrom")
	default:
		report.failed("urlFrom", w.URLFrom.check())
	}
	if w.Mode != "" && w.Mode != ModeStructured && w.Mode != ModeBatch {
		report.wrong("mode", "%q is neither %s nor %s", w.Mode, ModeStructured, ModeBatch)
	}
	if !w.SigningKey.IsZero() {
		report.failed("signingKey", w.SigningKey.check())
	}
	if _, known := markups[w.markup()]; !known {
		report.wrong("markup", "%q is none of %s, %s, %s and %s", w.Markup, MarkupMarkdown, MarkupSlack, MarkupPlain, MarkupNone)
	} else if _, err := w.template(); err != nil {
		report.failed("body", err)
	}
	for i, h := range w.Headers {
		h.check(report.in(fmt.Sprintf("headers[%d]", i)))
	}
}

func (w *Webhook) reads() []Read {
	all := []Read{{"urlFrom", w.URLFrom}, {"signingKey", w.SigningKey}}
	for i, h := range w.Headers {
		all = append(all, Read{fmt.Sprintf("headers[%d].from", i), h.From})
	}
	return append(all, Read{"caFile", SecretRef{File: w.CAFile}})
}

func (w *Webhook) batch() int {
	switch {
	case w.Mode != ModeBatch:
		return 1
	case w.Body != "":
		return 20 // a message that people read
	default:
		return 100
	}
}

func (w *Webhook) markup() string { return cmp.Or(w.Markup, MarkupMarkdown) }

// template returns the template of the body, or nil if there is none.
func (w *Webhook) template() (*template.Template, error) {
	t, err := parseTemplate(w.Body, w.markup())
	if err != nil || w.Body == "" {
		return nil, err
	}
	return t, tryBody(t)
}

// Header is a header of a request.
type Header struct {
	Name string `yaml:"name"`
	// Value is the value. Every reader of the configuration sees it.
	Value Secret `yaml:"value,omitempty"`
	// From says where the value is, instead of Value.
	From SecretRef `yaml:"from,omitempty"`
}

// ownHeaders are those that the webhook sets itself.
var ownHeaders = []string{"Content-Type", "Content-Length", "Transfer-Encoding", "Connection", "Host", SignatureHeader}

func (h Header) check(report reporter) {
	switch {
	case h.Name == "":
		report.wrong("name", "is empty")
	case len(validation.IsHTTPHeaderName(h.Name)) > 0:
		report.wrong("name", "%q cannot be the name of a header", h.Name)
	case slices.ContainsFunc(ownHeaders, func(own string) bool { return strings.EqualFold(own, h.Name) }):
		report.wrong("name", "%s is set by the sink itself", h.Name)
	}
	switch {
	case h.Value.IsZero():
		report.failed("from", h.From.check())
	case !h.From.IsZero():
		report.wrong("from", "there is a value as well; set one of them")
	default:
		report.failed("value", validHeaderValue(h.Value))
	}
}

// validHeaderValue reports what a header cannot have. The value is not in the error.
func validHeaderValue(value Secret) error {
	if strings.ContainsFunc(value.Reveal(), func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return errors.New("has a character that a header cannot have, such as a line break")
	}
	return nil
}

// parseURL reads the URL of a webhook. The URL is not in the error.
func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, errors.New("is not a URL (it is not shown, because it can hold a secret)")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("does not begin with http:// or https://")
	case u.Host == "":
		return nil, errors.New("names no host")
	case u.Fragment != "":
		return nil, errors.New("has a fragment (#…), which is not sent to servers; write # as %23 if it belongs to the query")
	}
	return u, nil
}
