// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package traces

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// How a batch is tried again.
// Source: go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp, DefaultConfig of package retry.
const (
	firstPause   = 5 * time.Second
	longestPause = 30 * time.Second
	longestTry   = time.Minute // of one batch, with pauses
)

// mostAnswer bounds how much of an answer is read, in bytes.
const mostAnswer = 64 << 10

// newClient returns the client that posts batches. It does not follow redirects: the headers may have a token.
func newClient(c *Config) *http.Client {
	transport := c.Transport
	if transport == nil {
		own := http.DefaultTransport.(*http.Transport).Clone()
		if c.TLS != nil {
			own.TLSClientConfig = c.TLS.Clone()
		}
		transport = own
	}
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// shown returns an endpoint without a password and a query.
func shown(endpoint string) string {
	at, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: at.Scheme, Host: at.Host, Path: at.Path}).String()
}

// unavailable is an error after which a batch is tried again.
type unavailable struct {
	error
	after time.Duration // that the receiver asks for; 0: it does not
}

// deliver posts a batch, and tries again for a minute while the receiver is not available.
func (e *Exporter) deliver(ctx context.Context, batch message) error {
	ctx, cancel := context.WithTimeout(ctx, longestTry)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := e.post(ctx, batch)
		away, ok := errors.AsType[unavailable](err)
		if !ok {
			return err
		}
		e.sayAway(ctx, err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(max(pause, away.after)):
		}
	}
}

// sayAway logs the first failure at once: a batch is tried for a minute. It logs nothing while the manager stops.
func (e *Exporter) sayAway(ctx context.Context, err error) {
	if ctx.Err() == nil {
		e.say(err)
	}
}

// post posts a batch once.
func (e *Exporter) post(ctx context.Context, batch message) error {
	ctx, cancel := context.WithTimeout(ctx, e.config.Timeout)
	defer cancel()
	body := []byte(batch)
	if e.config.Gzip {
		body = compressed(body)
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, e.config.Endpoint, bytes.NewReader(body))
	if err != nil {
		return errors.New("the endpoint is not a URL")
	}
	for name, value := range e.config.Headers {
		q.Header.Set(name, value)
	}
	q.Header.Set("Content-Type", "application/x-protobuf")
	if e.config.Gzip {
		q.Header.Set("Content-Encoding", "gzip")
	}
	answer, err := e.http.Do(q)
	if of, ok := errors.AsType[*url.Error](err); ok {
		err = of.Err // its text has the URL, which may have a token
	}
	if err != nil {
		return unavailable{error: err}
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	switch {
	case answer.StatusCode/100 != 2:
		return refused(answer)
	case err != nil:
		return nil // the receiver took the batch, and did not end its answer
	}
	return rejected(text)
}

// refused returns the error of an answer that is none of success.
// Source: OpenTelemetry Protocol Specification, "Retryable Response Codes".
func refused(answer *http.Response) error {
	err := fmt.Errorf("the receiver answers %s", answer.Status)
	again := []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}
	if !slices.Contains(again, answer.StatusCode) {
		return err
	}
	seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After")) // 0 if it is a date
	return unavailable{error: err, after: time.Duration(max(seconds, 0)) * time.Second}
}

// rejection is how many spans of a batch the receiver did not want.
type rejection uint64

func (r rejection) Error() string {
	return fmt.Sprintf("the receiver rejects spans; of the first batch %d", uint64(r))
}

// rejected returns an error if an answer of success says that the receiver did not want some of the spans.
// Source: opentelemetry-proto, ExportTraceServiceResponse and ExportTracePartialSuccess.
func rejected(answer []byte) error {
	const partialSuccess, rejectedSpans = 1, 1
	partial, _ := protowire.ConsumeBytes(field(answer, partialSuccess, protowire.BytesType))
	if n, size := protowire.ConsumeVarint(field(partial, rejectedSpans, protowire.VarintType)); size > 0 && n > 0 {
		return rejection(n)
	}
	return nil
}

// field returns the bytes of a message from the value of a field on, or nothing.
func field(of []byte, number protowire.Number, kind protowire.Type) []byte {
	for len(of) > 0 {
		is, k, n := protowire.ConsumeTag(of)
		if n < 0 {
			return nil
		}
		of = of[n:]
		if is == number && k == kind {
			return of
		}
		if n = protowire.ConsumeFieldValue(is, k, of); n < 0 {
			return nil
		}
		of = of[n:]
	}
	return nil
}

func compressed(body []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(body) // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}
