// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
	"github.com/nicholas-fedor/shoutrrr/pkg/util/jsonclient"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/format"
)

// notify writes to people. Several events are one message, a line each, as far as the
// service has room.
//
// The library takes no context and sets no time limit for some services. A call that does
// not return is left behind, once: until it has, nothing else is sent, and when it has, it
// counts, so that a slow service does not get everything twice.
type notify struct {
	raw     Secret
	service service
	title   string
	text    *template.Template // nil: one line of words
	escape  escaper
	scrub   scrubber

	send  func(message string) error // of the library; nil before it is made
	late  *call                      // one that was left behind
	early map[string]bool            // events that a call took after it was left behind
	build func() (func(string) error, error)
}

// call is a message on its way.
type call struct {
	events []*event.Event
	done   chan error
}

func newNotify(o Notify, d Deps) (Sink, error) {
	raw, err := d.secret(o.URLFrom)
	if err != nil {
		return nil, within("urlFrom", err)
	}
	n := &notify{raw: raw, title: o.Title}
	n.scrub.addService(raw.Reveal())
	u, err := url.Parse(raw.Reveal())
	if err != nil || u.Scheme == "" {
		return nil, wrong("urlFrom", "what is in the %s is not a URL (it is not shown, because it is a secret); one is slack://hook:…@webhook", o.URLFrom)
	}
	scheme, _, _ := strings.Cut(strings.ToLower(u.Scheme), "+")
	var known bool
	if n.service, known = services[scheme]; !known {
		return nil, wrong("urlFrom", "the URL in the %s is of no service that is known; those are %s",
			o.URLFrom, strings.Join(slices.Sorted(maps.Keys(services)), ", "))
	}
	n.escape = escaperOf(scheme, u)
	if o.Title != "" && !n.service.title {
		return nil, wrong("title", "%s has no titles; leave it out", scheme)
	}
	if o.Template != "" {
		if n.text, err = o.template(); err != nil {
			return nil, within("template", err)
		}
		n.text.Funcs(templateFuncs(n.escape))
	}
	n.build = n.fromLibrary
	if !n.service.login {
		if n.send, err = n.build(); err != nil {
			return nil, within("urlFrom", err)
		}
	}
	return n, nil
}

// fromLibrary makes the service of its URL. Its errors are cleaned.
func (n *notify) fromLibrary() (send func(string) error, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the service cannot be made of the URL (%T)", p)
		}
	}()
	service, err := new(router.ServiceRouter).Locate(n.raw.Reveal())
	if err != nil {
		return nil, fmt.Errorf("the service cannot be made of the URL: %s", n.scrub.clean(err.Error()))
	}
	return func(message string) error {
		params := types.Params{}
		if n.title != "" {
			params.SetTitle(n.title)
		}
		return service.Send(message, &params)
	}, nil
}

// Send sends events, as few messages as will do.
func (n *notify) Send(ctx context.Context, events []*event.Event) Result {
	var r Result
	if r.Err = n.waitForLate(ctx); r.Err != nil {
		return r
	}
	for r.Done < len(events) {
		rest := events[r.Done:]
		if n.early[rest[0].ID] {
			delete(n.early, rest[0].ID)
			r.Done++
			continue
		}
		message, count, err := n.message(rest)
		if err != nil {
			r.refuse(err)
			continue
		}
		switch err := n.deliver(ctx, message, rest[:count]); {
		case err == nil:
			r.Done += count
		case errors.Is(err, errMessageRefused):
			for range count {
				r.refuse(err)
			}
		default:
			r.Err = err
			return r
		}
	}
	return r
}

// waitForLate waits for a call that was left behind.
func (n *notify) waitForLate(ctx context.Context) error {
	if n.late == nil {
		return nil
	}
	select {
	case err := <-n.late.done:
		if err == nil {
			n.early = map[string]bool{}
			for _, e := range n.late.events {
				n.early[e.ID] = true
			}
		}
		n.late = nil
		return nil
	case <-ctx.Done():
		return errLate
	}
}

// message returns the message for as many of the events as have room in it. An error is of
// the first one.
func (n *notify) message(events []*event.Event) (text string, count int, err error) {
	var b strings.Builder
	for i, e := range events {
		if n.early[e.ID] {
			break
		}
		line, err := n.line(e)
		if err != nil {
			if i == 0 {
				return "", 0, err
			}
			break
		}
		line = cut(line, n.service.limit)
		if i > 0 && b.Len()+1+len(line) > n.service.limit {
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(line)
		count++
	}
	return b.String(), count, nil
}

func (n *notify) line(e *event.Event) (string, error) {
	if n.text == nil {
		return n.escape(format.Sentence(e)), nil
	}
	var b strings.Builder
	if err := n.text.Execute(&b, e); err != nil {
		return "", fmt.Errorf("the template fails: %w", err)
	}
	line := strings.TrimSpace(b.String())
	if line == "" {
		return "", errors.New("the template says nothing about the event")
	}
	return line, nil
}

// errLate says that the service has not answered yet.
var errLate = errors.New("the service has not answered in time")

// deliver sends a message. Its errors are cleaned.
func (n *notify) deliver(ctx context.Context, message string, events []*event.Event) error {
	c := &call{events: events, done: make(chan error, 1)}
	go func() { c.done <- n.call(message) }()
	select {
	case err := <-c.done:
		return n.classify(err)
	case <-ctx.Done():
		n.late = c
		return errLate
	}
}

// call is the call of the library. Only one is under way at a time.
func (n *notify) call(message string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the library panicked (%T)", p)
		}
	}()
	if n.send == nil {
		if n.send, err = n.build(); err != nil {
			return err
		}
	}
	return n.send(message)
}

// errMessageRefused is wrapped by what is refused for good.
var errMessageRefused = errors.New("the service refused the message")

// classify says whether a message can be tried again, in words without a secret. What is
// wrong with the URL or the account can be mended, so it is tried again; what is wrong with
// the message is not.
func (n *notify) classify(err error) error {
	if err == nil {
		return nil
	}
	text := n.scrub.clean(err.Error())
	switch status(err) {
	case 400, 406, 409, 411, 413, 414, 415, 422, 501, 552, 553, 554:
		return fmt.Errorf("%w: %s", errMessageRefused, text)
	}
	return fmt.Errorf("the service did not take the message: %s", text)
}

// inText finds the status in the words of an error, which is where most services have it.
var inText = regexp.MustCompile(`(?i:status|http|code|response)\D{0,20}\b([1-5]\d\d)\b|\b([1-5]\d\d) [A-Z][a-z]+`)

// status returns the status of HTTP, or the code of SMTP, that an error is about; 0 if it
// is not known.
func status(err error) int {
	if inner := (jsonclient.Error{}); errors.As(err, &inner) {
		return inner.StatusCode
	}
	if inner := (*textproto.Error)(nil); errors.As(err, &inner) {
		return inner.Code
	}
	found := inText.FindStringSubmatch(anyURL.ReplaceAllString(err.Error(), ""))
	if found == nil {
		return 0
	}
	code, _ := strconv.Atoi(found[1] + found[2]) // three digits
	return code
}

// Close does nothing: the library keeps nothing open. A call that was left behind ends when
// the service answers or its connection does.
func (n *notify) Close() error { return nil }
