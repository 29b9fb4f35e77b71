// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"bytes"
	"io"
	"testing"

	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// Body returns the body of a request that a server is about to read, for a function of
// [fakeapi.Resource.Before]. The key of a create has no name: a test finds it in the body, whose texts
// are as they are in JSON and in protobuf.
func Body(t testing.TB, q *fakeapi.Request) []byte {
	if q.HTTP.Body == nil {
		return nil
	}
	body, err := io.ReadAll(q.HTTP.Body)
	if err != nil {
		t.Errorf("reading the body of %s: %v", q, err)
	}
	q.HTTP.Body = io.NopCloser(bytes.NewReader(body))
	return body
}
