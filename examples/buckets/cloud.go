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
	"strings"

	"github.com/setpoint-io/setpoint/controller/worlds"
)

// bucket is what the cloud stores of a bucket.
type bucket struct {
	Region string `json:"region"`
}

// cloud is an HTTP API that is slow and fails.
type cloud struct {
	url    string // without a slash at the end
	client http.Client
}

// get returns a bucket, nil if there is none of that name.
func (c *cloud) get(ctx context.Context, name string) (*bucket, error) {
	return c.call(ctx, http.MethodGet, name, nil)
}

// put creates a bucket or changes it. A repeated call has no further effect.
func (c *cloud) put(ctx context.Context, name string, b bucket) (*bucket, error) {
	return c.call(ctx, http.MethodPut, name, &b)
}

// remove removes a bucket. One that is not there is no error.
func (c *cloud) remove(ctx context.Context, name string) (*bucket, error) {
	return c.call(ctx, http.MethodDelete, name, nil)
}

func (c *cloud) call(ctx context.Context, method, name string, b *bucket) (*bucket, error) {
	var body bytes.Buffer
	if b != nil {
		if err := json.NewEncoder(&body).Encode(b); err != nil {
			return nil, worlds.NotDone(err)
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, c.url+"/buckets/"+name, &body)
	if err != nil {
		return nil, worlds.NotDone(err)
	}
	answer, err := c.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("calling the cloud: %w", err) // it may have got the request
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	if err != nil {
		return nil, fmt.Errorf("reading the cloud's answer: %w", err)
	}
	switch code := answer.StatusCode; {
	case code == http.StatusNotFound && method != http.MethodPut, code == http.StatusNoContent:
		return nil, nil
	case code == http.StatusOK:
		is := &bucket{}
		if err := json.Unmarshal(text, is); err != nil {
			return nil, fmt.Errorf("reading the cloud's answer: %w", err)
		}
		return is, nil
	case code >= 400 && code < 500:
		return nil, worlds.NotDone(fmt.Errorf("the cloud refuses: %s: %.200s", answer.Status, strings.TrimSpace(string(text))))
	}
	return nil, fmt.Errorf("the cloud says %s: %.200s", answer.Status, strings.TrimSpace(string(text)))
}
