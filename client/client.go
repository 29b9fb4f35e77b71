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

	"github.com/setpoint-io/setpoint/object"
)

// Client speaks with one API server under one set of credentials. It is safe for
// concurrent use.
type Client struct {
	http    *http.Client
	base    *url.URL
	scheme  *runtime.Scheme
	timeout time.Duration // of requests that are no streams; 0 is none
	turns   turns         // of requests that are no streams

	kinds sync.Map // of types, which do not change: reflect.Type to GroupVersionKind

	mu        sync.Mutex
	resources map[schemaKey]object.Resource // found by discovery
}

// An Option changes how a Client is made.
type Option func(*Client)

// WithScheme gives the client types that are not Kubernetes' own, with their kinds.
// Those of k8s.io/api are known to every client.
func WithScheme(s *runtime.Scheme) Option { return func(c *Client) { c.scheme = s } }

// New returns a client of the server that config names. It does not connect.
// config is copied. Its QPS and Burst are not used, see the package's
// documentation.
func New(config *rest.Config, options ...Option) (*Client, error) {
	if config == nil {
		return nil, errors.New("making an API client: no configuration given")
	}
	config = rest.CopyConfig(config)
	timeout := config.Timeout
	config.Timeout = 0 // it would end watches too
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("making an API client: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("making an API client: server address %q: %w", config.Host, err)
	}
	base.Path = strings.TrimSuffix(base.Path, "/")
	c := &Client{
		http: &http.Client{
			Transport: transport,
			// An API server does not redirect. Following one would carry a
			// token to whoever answers.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		base:      base,
		scheme:    runtime.NewScheme(),
		timeout:   timeout,
		turns:     make(turns, atOnce),
		resources: map[schemaKey]object.Resource{},
	}
	for _, option := range options {
		option(c)
	}
	return c, nil
}

// Server returns the server's address, without credentials.
func (c *Client) Server() string { return c.base.Redacted() }
