// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/internal/pause"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// maxRetries is how often a request is sent again because its answer carried a
// Retry-After. Source: k8s.io/client-go/rest, maxRetries.
const maxRetries = 10

// maxRetryAfter is the longest wait that the client takes from an answer. An API server
// sends at most 32 s (k8s.io/apiserver/pkg/util/flowcontrol, maxRetryAfter). Proxies have
// no limit.
const maxRetryAfter = time.Minute

// maxAnswer is the largest body that [Request.Do] reads, in bytes.
const maxAnswer = wire.DefaultLimit

// Request builds one request. Its methods return the request, so that they can be chained; Do
// and Stream return the first error of the methods before. A Request is used once, by one
// goroutine.
type Request struct {
	client      *Client
	method      string
	resource    object.Resource
	path        string
	namespace   string
	name        string
	subresource string
	params      url.Values
	accept      string
	contentType string
	body        []byte
	err         error

	options  writeOptions
	part     schema.GroupVersionKind // of the object that a subresource takes; zero: the resource's
	harmless bool                    // a POST that changes no object
}

// Request begins a request with an HTTP method.
func (c *Client) Request(method string) *Request {
	return &Request{client: c, method: method, accept: wire.JSON.MediaType()}
}

// Resource sets the resource, for requests about objects.
func (r *Request) Resource(resource object.Resource) *Request { r.resource = resource; return r }

// Path sets a path outside of the resources, such as "/readyz".
func (r *Request) Path(p string) *Request { r.path = p; return r }

// Namespace sets the namespace; empty is all namespaces.
func (r *Request) Namespace(namespace string) *Request {
	r.namespace = namespace
	return r.segment("namespace", namespace)
}

// Name sets the name of one object.
func (r *Request) Name(name string) *Request {
	if name == "" {
		return r.fail(errors.New("the name is empty"))
	}
	r.name = name
	return r.segment("name", name)
}

// Key sets the namespace and the name of one object.
func (r *Request) Key(key object.Key) *Request { return r.Namespace(key.Namespace).Name(key.Name) }

// Subresource sets the subresource of an object, such as "log". For subresources that take and
// return objects, use [Sub].
func (r *Request) Subresource(name string) *Request {
	if name == "" {
		return r.fail(errors.New("the subresource is empty"))
	}
	r.subresource = name
	return r.segment("subresource", name)
}

// Param adds a query parameter. Empty values are left out.
func (r *Request) Param(name, value string) *Request {
	if value == "" {
		return r
	}
	if r.params == nil { // most have none
		r.params = url.Values{}
	}
	r.params.Set(name, value)
	return r
}

// Accept sets the media types of the answer, the preferred one first. A client that uses only
// JSON leaves protobuf out.
func (r *Request) Accept(mediaTypes ...string) *Request {
	if r.client.jsonOnly {
		mediaTypes = slices.DeleteFunc(slices.Clone(mediaTypes), func(t string) bool {
			return strings.HasPrefix(t, wire.Protobuf.MediaType())
		})
	}
	r.accept = strings.Join(mediaTypes, ",")
	return r
}

// Body gives the request a body. It is not copied and may be sent more than once.
func (r *Request) Body(contentType string, body []byte) *Request {
	r.contentType, r.body = contentType, body
	return r
}

// segment refuses names that would change the path's meaning.
func (r *Request) segment(what, s string) *Request {
	if s == "." || s == ".." || strings.ContainsAny(s, "/%") {
		return r.fail(fmt.Errorf("%s %q cannot stand in a URL", what, s))
	}
	return r
}

func (r *Request) fail(err error) *Request {
	if r.err == nil {
		r.err = err
	}
	return r
}

// String describes the request for errors: "get pods team-a/web".
func (r *Request) String() string {
	var b strings.Builder
	b.WriteString(strings.ToLower(r.method))
	b.WriteByte(' ')
	if r.resource == (object.Resource{}) {
		b.WriteString(r.path)
		return b.String()
	}
	b.WriteString(r.resource.String())
	if r.subresource != "" {
		b.WriteString("/" + r.subresource)
	}
	if r.name != "" {
		b.WriteString(" " + object.Key{Namespace: r.namespace, Name: r.name}.String())
	} else if r.namespace != "" {
		b.WriteString(" in namespace " + r.namespace)
	}
	return b.String()
}

func (r *Request) url() *url.URL {
	u := *r.client.base
	if r.resource == (object.Resource{}) {
		u.Path = path.Join("/", u.Path, r.path)
	} else {
		segments := [...]string{"/", u.Path, "apis", r.resource.Group, r.resource.Version, "", "", r.resource.Plural, r.name, r.subresource}
		if r.resource.Group == "" {
			segments[2] = "api"
		}
		if r.namespace != "" {
			segments[5], segments[6] = "namespaces", r.namespace
		}
		u.Path = path.Join(segments[:]...)
	}
	u.RawQuery = r.params.Encode()
	return &u
}

// Answer is an answer that was read to its end.
type Answer struct {
	Code     int
	Encoding wire.Encoding
	Body     []byte
}

// Do sends the request and reads the whole answer.
func (r *Request) Do(ctx context.Context) (Answer, error) {
	if r.client.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.client.timeout)
		defer cancel()
	}
	response, err := r.send(ctx, r.client.turns)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	body, err := readAll(response)
	if err != nil {
		return Answer{}, r.unanswered(err)
	}
	if len(body) > maxAnswer {
		return Answer{}, &unreadableError{fmt.Errorf("%s: the answer is larger than %d bytes", r, maxAnswer)}
	}
	answer := Answer{Code: response.StatusCode, Body: body}
	// Paths outside of the resources answer in text, which is in Body.
	if encoding, err := wire.EncodingOf(response.Header.Get("Content-Type")); err == nil {
		answer.Encoding = encoding
	} else if r.resource != (object.Resource{}) {
		return Answer{}, &unreadableError{fmt.Errorf("%s: %w: is %s a Kubernetes API server?", r, err, r.client.Server())}
	}
	return answer, nil
}

// readAll reads a body up to one byte more than may be. One whose length the server names,
// as of most single objects, is read into a buffer of that size: growing one was a
// seventh of all that a manager allocated while it created Pods.
func readAll(response *http.Response) ([]byte, error) {
	const first = 64 << 10 // a bound, because the server may send any number
	var body bytes.Buffer
	if n := response.ContentLength; n > 0 {
		body.Grow(int(min(n, first)) + bytes.MinRead) // which ReadFrom wants to have free
	}
	_, err := body.ReadFrom(io.LimitReader(response.Body, maxAnswer+1))
	return body.Bytes(), err
}

// Stream is an answer that the caller reads as it arrives, and closes.
type Stream struct {
	Encoding wire.Encoding
	Body     io.ReadCloser
	// Compressed is set if the server compresses the answer. Body has the decompressed bytes.
	Compressed bool
}

// Stream sends the request and returns the answer's body unread. It ends when ctx
// does.
func (r *Request) Stream(ctx context.Context) (*Stream, error) {
	response, err := r.send(ctx, nil) // a watch lasts, and would hold its turn for ever
	if err != nil {
		return nil, err
	}
	encoding, err := wire.EncodingOf(response.Header.Get("Content-Type"))
	if err != nil {
		response.Body.Close()
		return nil, fmt.Errorf("%s: %w: is %s a Kubernetes API server?", r, err, r.client.Server())
	}
	return &Stream{Encoding: encoding, Body: response.Body, Compressed: response.Uncompressed}, nil
}

// send sends the request until it has an answer that is final. Answers that are
// errors are returned as such. With turns it takes one for each try, which the end of
// the answer's body gives back.
func (r *Request) send(ctx context.Context, turns turns) (*http.Response, error) {
	if r.subresource != "" && r.name == "" { // the path would name an object called as the subresource
		r.fail(errors.New("a subresource is of one object, whose name is missing"))
	}
	if r.lacksNamespace() {
		r.fail(fmt.Errorf("the namespace is missing: %s live in namespaces", r.resource))
	}
	if r.err != nil {
		return nil, fmt.Errorf("%s: %w", r, r.err)
	}
	target := r.url()
	headers := [...]string{r.accept, r.contentType}
	accept, contentType := headers[:1:1], headers[1:2:2]
	for try := 0; ; try++ {
		var body io.Reader
		if r.body != nil {
			body = bytes.NewReader(r.body)
		}
		request, err := http.NewRequestWithContext(ctx, r.method, "", body)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r, err)
		}
		request.URL, request.Host = target, target.Host
		request.Header["User-Agent"] = r.client.agent
		request.Header["Accept"] = accept
		if r.body != nil {
			request.Header["Content-Type"] = contentType
		}
		response, err := r.try(request, turns)
		if err != nil {
			return nil, err
		}
		if response.StatusCode >= 200 && response.StatusCode < 300 {
			return response, nil
		}
		wait, again := retryAfter(response)
		err = r.statusError(response)
		response.Body.Close()
		// A write that may have been carried out is not sent again: the second answer would
		// hide what the first one did, and a create under a generated name makes two objects.
		if !again || r.options.noRetries || try == maxRetries || r.writes() && Unanswered(err) {
			return nil, err
		}
		if !pause.For(ctx, wait+jitter(wait)) {
			return nil, err // what the server said tells more than that time ran out
		}
	}
}

// lacksNamespace reports whether the request is for one object, or writes, and names no
// namespace where the kind has them. A server answers that it "could not find the requested
// resource" or "does not allow this method", which do not say what is wrong. Objects of all
// namespaces can only be listed and watched.
func (r *Request) lacksNamespace() bool {
	return r.resource.Namespaced && r.namespace == "" && (r.name != "" || r.writes())
}

// try sends the request once. It goes to the transport and not by way of an http.Client:
// an API server does not redirect, and following one would carry a token to another server.
func (r *Request) try(request *http.Request, turns turns) (*http.Response, error) {
	if turns == nil {
		response, err := r.client.transport.RoundTrip(request)
		if err != nil {
			return nil, r.unanswered(err)
		}
		return response, nil
	}
	if err := turns.take(request.Context()); err != nil {
		return nil, fmt.Errorf("%s: waiting for earlier requests: %w", r, &NotSentError{Cause: err})
	}
	response, err := r.client.transport.RoundTrip(request)
	if err != nil {
		turns.give()
		return nil, r.unanswered(err)
	}
	response.Body = turns.until(response.Body)
	return response, nil
}

// writes reports whether the request may change what the server has.
func (r *Request) writes() bool { return r.method != http.MethodGet && r.method != http.MethodHead }

// jitter is added to a wait, up to half of it, so that the clients that a server turned away
// at one moment do not come back at one moment.
func jitter(wait time.Duration) time.Duration {
	return rand.N(wait/2 + 1)
}

// retryAfter reports whether the server asks to be tried again, and when: after at most
// maxRetryAfter, whatever it says.
func retryAfter(response *http.Response) (time.Duration, bool) {
	if response.StatusCode != http.StatusTooManyRequests && response.StatusCode < 500 {
		return 0, false
	}
	seconds, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 31)
	if err != nil {
		return 0, false
	}
	return min(time.Duration(seconds)*time.Second, maxRetryAfter), true
}
