// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Options describe one sink: exactly one of the pointers is set, and says of which sort it
// is. The yaml tags are the words of the configuration.
type Options struct {
	Terminal         *Terminal         `yaml:"terminal,omitempty"`
	File             *File             `yaml:"file,omitempty"`
	Webhook          *Webhook          `yaml:"webhook,omitempty"`
	KubernetesEvents *KubernetesEvents `yaml:"kubernetesEvents,omitempty"`
	Mail             *Mail             `yaml:"mail,omitempty"`

	// Delivery is how often and how long it is tried.
	Delivery Delivery `yaml:"delivery,omitempty"`
}

// The sorts of sinks, as Options.Sort returns them and as the configuration has them.
const (
	SortTerminal         = "terminal"
	SortFile             = "file"
	SortWebhook          = "webhook"
	SortKubernetesEvents = "kubernetesEvents"
	SortMail             = "mail"
)

// Sort returns which sort of sink is described: one of the Sort constants, or "" if none
// is or several are.
func (o Options) Sort() string {
	if sorts := o.sorts(); len(sorts) == 1 {
		return sorts[0]
	}
	return ""
}

func (o Options) sorts() []string {
	var sorts []string
	for _, s := range []struct {
		set  bool
		name string
	}{
		{o.Terminal != nil, SortTerminal},
		{o.File != nil, SortFile},
		{o.Webhook != nil, SortWebhook},
		{o.KubernetesEvents != nil, SortKubernetesEvents},
		{o.Mail != nil, SortMail},
	} {
		if s.set {
			sorts = append(sorts, s.name)
		}
	}
	return sorts
}

// Validate reports the first thing that is wrong. It is a *FieldError, unless the options
// are of no sort or of several.
func (o Options) Validate() error {
	switch sorts := o.sorts(); len(sorts) {
	case 0:
		return fmt.Errorf("a sink needs one of %s, %s, %s, %s and %s", SortTerminal, SortFile, SortWebhook, SortKubernetesEvents, SortMail)
	case 1:
	default:
		return fmt.Errorf("a sink is of one sort, and this is of %d (%s): make them sinks of their own", len(sorts), strings.Join(sorts, ", "))
	}
	var err error
	switch {
	case o.Terminal != nil:
		err = within(SortTerminal, o.Terminal.Validate())
	case o.File != nil:
		err = within(SortFile, o.File.Validate())
	case o.Webhook != nil:
		err = within(SortWebhook, o.Webhook.Validate())
	case o.KubernetesEvents != nil:
		err = within(SortKubernetesEvents, o.KubernetesEvents.Validate())
	case o.Mail != nil:
		err = within(SortMail, o.Mail.Validate())
	}
	if err != nil {
		return err
	}
	return within("delivery", o.Delivery.Validate())
}

// Terminal describes a sink that prints.
type Terminal struct {
	// Form is text, diff, json, yaml or cloudevents. Default: text.
	Form string `yaml:"form,omitempty"`
	// Color says whether to print in colour. Default: no.
	Color bool `yaml:"color,omitempty"`
	// Objects says whether whole objects are printed in the forms that can.
	Objects bool `yaml:"objects,omitempty"`
	// Source is the source of CloudEvents: a URI, or the name of the cluster.
	Source string `yaml:"source,omitempty"`
}

// Validate reports the first field that is wrong.
func (t Terminal) Validate() error { return validForm(t.Form) }

// File describes a sink that writes a file and rotates it.
type File struct {
	// Path is where the file is. Its folder must exist. Files that were rotated lie beside
	// it, with the time in their name.
	Path string `yaml:"path"`
	// Form is text, diff, json, yaml or cloudevents. Default: json.
	Form string `yaml:"form,omitempty"`
	// Objects says whether whole objects are written in the forms that can.
	Objects bool `yaml:"objects,omitempty"`
	// Source is the source of CloudEvents: a URI, or the name of the cluster.
	Source string `yaml:"source,omitempty"`
	// MaxSizeMB is the size, in MiB, at which the file is rotated. Default: 100.
	MaxSizeMB int `yaml:"maxSizeMB,omitempty"`
	// MaxAgeDays is after how many days a rotated file is deleted. Default: never.
	MaxAgeDays int `yaml:"maxAgeDays,omitempty"`
	// MaxBackups is how many rotated files are kept. Default: all.
	MaxBackups int `yaml:"maxBackups,omitempty"`
	// Compress says whether rotated files are compressed with gzip.
	Compress bool `yaml:"compress,omitempty"`
}

// Validate reports the first field that is wrong. It does not look at the disk.
func (f File) Validate() error {
	switch {
	case f.Path == "":
		return wrong("path", "is empty; name the file to write")
	case strings.HasSuffix(f.Path, string(filepath.Separator)):
		return wrong("path", "%q is a folder; name a file in it", f.Path)
	}
	return cmp.Or(validForm(f.Form),
		notNegative("maxSizeMB", f.MaxSizeMB), notNegative("maxAgeDays", f.MaxAgeDays), notNegative("maxBackups", f.MaxBackups))
}

// The modes of a webhook.
const (
	// ModeStructured sends each event in a request of its own.
	ModeStructured = "structured"
	// ModeBatch sends as many events in a request as wait, up to Delivery.Batch.
	ModeBatch = "batch"
)

// Webhook describes a sink that sends events over HTTP: as CloudEvents, or in a body of one's own.
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

// template returns the template of the body, or nil if there is none.
func (w Webhook) template() (*template.Template, error) {
	t, err := parseTemplate(w.Body, cmp.Or(w.Markup, MarkupMarkdown))
	if err != nil || w.Body == "" {
		return nil, err
	}
	return t, tryBody(t)
}

// Header is a header of a request.
type Header struct {
	Name string `yaml:"name"`
	// Value is the value, for all to read who can read the configuration.
	Value Secret `yaml:"value,omitempty"`
	// From says where the value is, instead of Value.
	From SecretRef `yaml:"from,omitempty"`
}

// ownHeaders are those that the webhook sets itself.
var ownHeaders = []string{"Content-Type", "Content-Length", "Transfer-Encoding", "Connection", "Host", SignatureHeader}

// Validate reports the first field that is wrong.
func (h Header) Validate() error {
	switch {
	case h.Name == "":
		return wrong("name", "is empty")
	case len(validation.IsHTTPHeaderName(h.Name)) > 0:
		return wrong("name", "%q cannot be the name of a header", h.Name)
	case slices.ContainsFunc(ownHeaders, func(own string) bool { return strings.EqualFold(own, h.Name) }):
		return wrong("name", "%s is set by the sink itself", h.Name)
	case !h.Value.IsZero() && !h.From.IsZero():
		return wrong("from", "there is a value as well; set one of them")
	case !h.Value.IsZero():
		return within("value", validHeaderValue(h.Value))
	}
	return within("from", h.From.Validate())
}

// validHeaderValue reports what a header cannot have. The value is not in the error.
func validHeaderValue(value Secret) error {
	if strings.ContainsFunc(value.Reveal(), func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return errors.New("has a character that a header cannot have, such as a line break")
	}
	return nil
}

// Validate reports the first field that is wrong. It looks nothing up: what URLFrom names
// is checked when the sink is made.
func (w Webhook) Validate() error {
	switch {
	case w.URL.IsZero() && w.URLFrom.IsZero():
		return wrong("url", "is empty; set it, or urlFrom")
	case !w.URL.IsZero() && !w.URLFrom.IsZero():
		return wrong("urlFrom", "there is a url as well; set one of them")
	case w.URL.IsZero():
		if err := w.URLFrom.Validate(); err != nil {
			return within("urlFrom", err)
		}
	default:
		if _, err := parseURL(w.URL.Reveal()); err != nil {
			return within("url", err)
		}
	}
	switch w.Mode {
	case "", ModeStructured, ModeBatch:
	default:
		return wrong("mode", "%q is neither %s nor %s", w.Mode, ModeStructured, ModeBatch)
	}
	if !w.SigningKey.IsZero() {
		if err := w.SigningKey.Validate(); err != nil {
			return within("signingKey", err)
		}
	}
	if _, known := markups[cmp.Or(w.Markup, MarkupMarkdown)]; !known {
		return wrong("markup", "%q is none of %s, %s, %s and %s", w.Markup, MarkupMarkdown, MarkupSlack, MarkupPlain, MarkupNone)
	}
	if _, err := w.template(); err != nil {
		return within("body", err)
	}
	for i, h := range w.Headers {
		if err := h.Validate(); err != nil {
			return within(fmt.Sprintf("headers[%d]", i), err)
		}
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

// KubernetesEvents describes a sink that writes Events of events.k8s.io, which kubectl
// shows under what they regard.
type KubernetesEvents struct {
	// Instance is the name of this process, which is in each Event. Default: setpoint-watch.
	Instance string `yaml:"instance,omitempty"`
	// ClusterNamespace is where Events about objects without a namespace are written.
	// default or kube-system; servers take no other. Default: default.
	ClusterNamespace string `yaml:"clusterNamespace,omitempty"`
}

// Validate reports the first field that is wrong.
func (k KubernetesEvents) Validate() error {
	if len(k.Instance) > 128 {
		return wrong("instance", "is of %d bytes, and the server takes 128", len(k.Instance))
	}
	switch k.ClusterNamespace {
	case "", metav1.NamespaceDefault, metav1.NamespaceSystem:
		return nil
	}
	return wrong("clusterNamespace", "%q is neither %s nor %s, and servers take Events about objects without a namespace in no other",
		k.ClusterNamespace, metav1.NamespaceDefault, metav1.NamespaceSystem)
}

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
	// Username and PasswordFrom are for the server. Default: nobody logs in.
	Username     string    `yaml:"username,omitempty"`
	PasswordFrom SecretRef `yaml:"passwordFrom,omitempty"`
	// Template is the text of one event, as text/template has it, over a *event.Event.
	// Default: {{words .}}, a line that says what happened.
	Template string `yaml:"template,omitempty"`
}

// Validate reports the first field that is wrong.
func (m Mail) Validate() error {
	if _, _, err := net.SplitHostPort(m.Server); err != nil {
		return wrong("server", "%q is not a host and a port, such as mail.example.com:587", m.Server)
	}
	if _, err := mail.ParseAddress(m.From); err != nil {
		return wrong("from", "%q is not an address", m.From)
	}
	if len(m.To) == 0 {
		return wrong("to", "is empty; name at least one address")
	}
	for i, to := range m.To {
		if _, err := mail.ParseAddress(to); err != nil {
			return wrong(fmt.Sprintf("to[%d]", i), "%q is not an address", to)
		}
	}
	if strings.ContainsAny(m.Subject, "\r\n") {
		return wrong("subject", "has a line break")
	}
	switch {
	case m.Username == "" && !m.PasswordFrom.IsZero():
		return wrong("username", "is empty, and there is a password")
	case m.Username != "":
		if err := m.PasswordFrom.Validate(); err != nil {
			return within("passwordFrom", err)
		}
	}
	_, err := m.template()
	return within("template", err)
}

func (m Mail) template() (*template.Template, error) {
	return parseTemplate(cmp.Or(m.Template, "{{words .}}"), MarkupNone)
}

// Delivery says how often and how long a Runner tries. A zero field is its default.
type Delivery struct {
	// Batch is how many events are given to the sink at once, at most. Default: 100 for
	// terminals, files, mail and webhooks in batch mode, 20 for those with a body, otherwise 1.
	Batch int `yaml:"batch,omitempty"`
	// Timeout is for one attempt. Default: 30s.
	Timeout time.Duration `yaml:"timeout,omitempty"`
	// MinWait is the wait after the first attempt that failed; it doubles with each one
	// that follows. Default: 1s.
	MinWait time.Duration `yaml:"minWait,omitempty"`
	// MaxWait is the longest wait. Default: 5m.
	MaxWait time.Duration `yaml:"maxWait,omitempty"`
	// MaxAge is how old an event gets: one that could not be sent for so long is dropped,
	// which is counted and said. Default: 24h.
	MaxAge time.Duration `yaml:"maxAge,omitempty"`
}

// maxBatch is the largest Delivery.Batch: what is in a batch is in memory at once.
const maxBatch = 10_000

// Validate reports the first field that is wrong.
func (d Delivery) Validate() error {
	if d.Batch > maxBatch {
		return wrong("batch", "%d is more than %d", d.Batch, maxBatch)
	}
	if err := cmp.Or(notNegative("batch", d.Batch), notNegative("timeout", d.Timeout), notNegative("minWait", d.MinWait),
		notNegative("maxWait", d.MaxWait), notNegative("maxAge", d.MaxAge)); err != nil {
		return err
	}
	if with := d.withDefaults(1); with.MaxWait < with.MinWait {
		return wrong("maxWait", "%v is less than minWait, %v", with.MaxWait, with.MinWait)
	}
	return nil
}

func (d Delivery) withDefaults(batch int) Delivery {
	return Delivery{
		Batch:   cmp.Or(d.Batch, batch),
		Timeout: cmp.Or(d.Timeout, 30*time.Second),
		MinWait: cmp.Or(d.MinWait, time.Second),
		MaxWait: cmp.Or(d.MaxWait, 5*time.Minute),
		MaxAge:  cmp.Or(d.MaxAge, 24*time.Hour),
	}
}

// batches are how many events a sort of sink takes at once by default; 1 for others.
var batches = map[string]int{SortTerminal: 100, SortFile: 100, SortMail: 100}

// Effective returns Delivery with the defaults of the sort of sink.
func (o Options) Effective() Delivery {
	batch := max(batches[o.Sort()], 1)
	if o.Webhook != nil && o.Webhook.Mode == ModeBatch {
		batch = 100
		if o.Webhook.Body != "" {
			batch = 20 // a message that people read
		}
	}
	return o.Delivery.withDefaults(batch)
}

// forms are what files and terminals are written in.
var forms = []string{"text", "diff", "json", "yaml", "cloudevents"}

func validForm(form string) error {
	if form != "" && !slices.Contains(forms, form) {
		return wrong("form", "%q is none of %s", form, strings.Join(forms, ", "))
	}
	return nil
}

func notNegative[T int | time.Duration](field string, v T) error {
	if v < 0 {
		return wrong(field, "%v is negative", v)
	}
	return nil
}
