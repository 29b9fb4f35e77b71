// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/setpoint-io/setpoint/internal/quiet"
	"github.com/setpoint-io/setpoint/object"
)

// Client sends requests to one API server with one set of credentials. It is safe for
// concurrent use.
type Client struct {
	transport http.RoundTripper
	dialer    *transport.DialHolder // nil: that of client-go
	base      *url.URL
	server    string   // base, for people
	agent     []string // the User-Agent of every request; not to be changed
	scheme    *runtime.Scheme
	timeout   time.Duration // of requests that are no streams; 0 is none
	jsonOnly  bool          // built-in kinds travel as JSON too
	turns     turns         // of requests that are no streams

	types sync.Map // reflect.Type to known
	whole sync.Map // the schema.GroupVersions whose server refuses to leave managedFields out

	mu        sync.Mutex
	resources map[schemaKey]object.Resource // found by discovery
}

// An Option changes how a Client is made.
type Option func(*Client)

// WithScheme gives the client types that are not Kubernetes' own, with their kinds.
// Those of k8s.io/api are known to every client.
func WithScheme(s *runtime.Scheme) Option { return func(c *Client) { c.scheme = s } }

// WithTransport makes the client send its requests by t, which authenticates them, instead of a
// transport made from the configuration. A program whose other clients have one shares its
// connections this way.
func WithTransport(t http.RoundTripper) Option { return func(c *Client) { c.transport = t } }

// QuietConnections makes the client read and write without waking the system monitor of the Go runtime for each event. A process that gets one event
// after another then takes a third less CPU. The price: where goroutines keep all processors and make no system call, another goroutine may wait
// for 250 ms instead of 10 ms until one of them is preempted.
//
// Clients with equal configurations and this option share connections, with each other and with no other client. The option works on Linux. It does nothing for
// a configuration that says how to connect: by Dial, by Transport, or by an exec plugin that gives the credentials.
func QuietConnections() Option { return func(c *Client) { c.dialer = quiet.Dialer } }

// New returns a client of the server that config names. It does not connect.
// config is copied. Its QPS and Burst are not used, see the package's
// documentation. With the ContentType application/json everything travels as JSON; any other
// is what the client does anyway.
func New(config *rest.Config, options ...Option) (*Client, error) {
	if config == nil {
		return nil, errors.New("making an API client: no configuration given")
	}
	config = rest.CopyConfig(config)
	timeout := config.Timeout
	config.Timeout = 0 // it would end watches too
	agent := config.UserAgent
	if agent == "" {
		agent = rest.DefaultKubernetesUserAgent()
	}
	config.UserAgent = "" // client-go's way of adding it is a copy of each request
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("making an API client: server address %q: %w", config.Host, err)
	}
	base.Path = strings.TrimSuffix(base.Path, "/")
	c := &Client{
		agent:     []string{agent},
		base:      base,
		server:    base.Redacted(),
		scheme:    runtime.NewScheme(),
		timeout:   timeout,
		turns:     make(turns, atOnce),
		resources: map[schemaKey]object.Resource{},
		jsonOnly:  config.ContentType == runtime.ContentTypeJSON,
	}
	for _, option := range options {
		option(c)
	}
	if c.transport == nil {
		if c.transport, err = c.transportFor(config); err != nil {
			return nil, fmt.Errorf("making an API client: %w", err)
		}
	}
	return c, nil
}

// transportFor is rest.TransportFor with the client's dialer, if the configuration has none.
func (c *Client) transportFor(config *rest.Config) (http.RoundTripper, error) {
	t, err := config.TransportConfig()
	if err != nil {
		return nil, err
	}
	if t.DialHolder == nil {
		t.DialHolder = c.dialer
	}
	return transport.New(t)
}

// Server returns the server's address, without credentials.
func (c *Client) Server() string { return c.server }
