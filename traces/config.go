// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package traces

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"time"
)

// Defaults of a Config.
// Source: OpenTelemetry specification, "Environment Variable Specification" and "OpenTelemetry Protocol Exporter".
const (
	DefaultTimeout = 10 * time.Second
	DefaultDelay   = 5 * time.Second
	DefaultQueue   = 2048
	DefaultBatch   = 512
)

// Config says where spans are sent, and how.
type Config struct {
	// Endpoint is the URL to which batches are posted, such as "http://collector:4318/v1/traces".
	Endpoint string
	// Headers are sent with each batch, such as those that authenticate the sender. They are not logged.
	Headers map[string]string
	// Gzip compresses the batches.
	Gzip bool
	// Timeout is how long a batch may take; 0 is DefaultTimeout.
	Timeout time.Duration
	// TLS is used for an endpoint with https; nil is the default of net/http.
	TLS *tls.Config
	// Transport sends the batches instead of one that is made of TLS.
	Transport http.RoundTripper

	// Resource has the attributes of the process, such as service.name.
	Resource map[string]string
	// Drop is the share of runs that get no span, between 0 and 1.
	Drop float64

	// Annotations has the objects that runs create carry the trace context of the run in the annotation
	// tracing.k8s.io/traceparent, and spans link to the contexts of the objects that their runs are about. This is the
	// form of KEP-5915, which is a draft.
	Annotations bool

	// Queue is how many ended runs may wait, Batch how many spans are sent at once, and Delay how long a run waits at most
	// for a batch to become full. 0 is the default of each.
	Queue, Batch int
	Delay        time.Duration

	// Log is the logger; nil is slog.Default.
	Log *slog.Logger
}

// complete returns a Config with defaults, or an error that says which field is wrong.
func (c Config) complete() (Config, error) {
	at, err := url.Parse(c.Endpoint)
	switch {
	case err != nil: // its text has the URL, which may have a password
		return c, errors.New("the endpoint is not a URL")
	case at.Scheme != "http" && at.Scheme != "https", at.Host == "":
		return c, errors.New("the endpoint has to be a URL such as http://collector:4318")
	case c.Timeout < 0 || c.Delay < 0:
		return c, errors.New("a time is negative")
	case c.Queue < 0 || c.Queue > math.MaxInt32 || c.Batch < 0:
		return c, fmt.Errorf("the queue has %d spans and a batch %d; want positive numbers", c.Queue, c.Batch)
	case !(c.Drop >= 0 && c.Drop <= 1):
		return c, fmt.Errorf("the share of runs without a span is %v; want 0 to 1", c.Drop)
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Delay == 0 {
		c.Delay = DefaultDelay
	}
	if c.Queue == 0 {
		c.Queue = DefaultQueue
	}
	if c.Batch == 0 {
		c.Batch = DefaultBatch
	}
	c.Batch = min(c.Batch, c.Queue)
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c, nil
}
