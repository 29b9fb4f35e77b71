// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// balancer is what the provider makes for a Service.
type balancer struct {
	Name    string  `json:"name,omitempty"`
	Ports   []int32 `json:"ports,omitempty"`
	Address string  `json:"address,omitempty"` // in answers, once there is one
}

// laterError is an answer that names the time of the next question.
type laterError struct {
	after time.Duration
	why   string
}

func (e *laterError) Error() string { return e.why }

// refusedError is an answer that no repetition changes.
type refusedError struct{ why string }

func (e *refusedError) Error() string { return e.why }

// provider is an HTTP API that is slow and fails.
type provider struct {
	url     string        // without a slash at the end
	timeout time.Duration // of one call
	client  http.Client
}

// ensure has the provider make a balancer, or change it, and returns its address.
// Asking twice for the same is asking once: the id is the caller's.
func (p *provider) ensure(ctx context.Context, id string, want balancer) (string, error) {
	body, err := json.Marshal(want)
	if err != nil {
		return "", err
	}
	var is balancer
	if err := p.call(ctx, http.MethodPut, id, body, &is); err != nil {
		return "", err
	}
	return is.Address, nil
}

// remove has the provider remove a balancer. One that is not there is no error.
func (p *provider) remove(ctx context.Context, id string) error {
	return p.call(ctx, http.MethodDelete, id, nil, nil)
}

func (p *provider) call(ctx context.Context, method, id string, body []byte, into any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.timeout, fmt.Errorf("no answer within %s", p.timeout))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, p.url+"/balancers/"+id, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := p.client.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("calling the provider: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	if err != nil {
		return fmt.Errorf("reading the provider's answer: %w", err)
	}
	why := fmt.Sprintf("the provider says %s: %.200s", answer.Status, strings.TrimSpace(string(text)))
	after, errAfter := strconv.Atoi(answer.Header.Get("Retry-After"))
	switch code := answer.StatusCode; {
	case errAfter == nil && after > 0: // 202, 429 and 503, as they come with it
		return &laterError{time.Duration(after) * time.Second, why}
	case code == http.StatusNotFound && method == http.MethodDelete:
		return nil
	case code == http.StatusOK && into != nil:
		return json.Unmarshal(text, into)
	case code == http.StatusOK, code == http.StatusNoContent:
		return nil
	case code >= 400 && code < 500 && code != http.StatusTooManyRequests:
		return &refusedError{why}
	}
	return fmt.Errorf("%s", why)
}
