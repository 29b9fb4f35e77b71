// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/wire"
)

// answer is the answer to a request.
type answer struct {
	w        http.ResponseWriter
	form     form
	resource *Resource
}

// result is what a request leads to: one of object, list and status.
type result struct {
	code     int
	object   *state
	list     *listing
	status   *metav1.Status
	body     []byte // a finished body, of another kind than the resource's
	warnings []string
}

// negotiate chooses the form that the client wants, by its Accept header.
func (a *answer) negotiate(accept string, r *Resource) error {
	a.resource = r
	if accept == "" {
		return nil
	}
	for clause := range strings.SplitSeq(accept, ",") {
		mediaType, parameters, err := mime.ParseMediaType(clause)
		if err != nil {
			continue
		}
		f := form{encoding: wire.JSON}
		switch mediaType {
		case wire.Protobuf.MediaType():
			f.encoding = wire.Protobuf
		case wire.JSON.MediaType(), "*/*", "application/*":
		default:
			continue
		}
		switch parameters["as"] {
		case metadataKind, metadataListKind:
			if parameters["g"] != "meta.k8s.io" || parameters["v"] != "v1" {
				continue
			}
			f.metadata = true
		case "":
		default:
			continue // a Table, say
		}
		if f.encoding == wire.Protobuf && !f.metadata && !r.builtin {
			continue
		}
		a.form = f
		return nil
	}
	if r.builtin {
		return unnamed(http.StatusNotAcceptable, "406: Not Acceptable\n\nAvailable representations: "+mediaTypes)
	}
	if strings.Contains(accept, wire.Protobuf.MediaType()) {
		a.form.encoding = wire.Protobuf
	}
	return newStatusError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"only the following media types are accepted: "+mediaTypes)
}

// mediaTypes are those of bodies.
var mediaTypes = strings.Join([]string{wire.JSON.MediaType(), yamlType, wire.Protobuf.MediaType()}, ", ")

// send sends the result of a request.
func (a *answer) send(r result) {
	for _, warning := range r.warnings {
		a.w.Header().Add("Warning", fmt.Sprintf("299 - %q", warning))
	}
	switch {
	case r.status != nil:
		a.status(r.status)
	case r.list != nil:
		a.write(r.code, r.list.body(a.resource, a.form))
	case r.body != nil:
		a.form = form{}
		a.write(r.code, r.body)
	default:
		apiVersion, kind := a.form.kind(a.resource)
		a.write(r.code, a.form.seal(apiVersion, kind, r.object.raw(a.resource, a.form)))
	}
}

// fail sends an error, which is an apierrors.APIStatus.
func (a *answer) fail(err error) {
	var refusal apierrors.APIStatus
	if !errors.As(err, &refusal) {
		refusal = apierrors.NewInternalError(err)
	}
	s := refusal.Status()
	a.status(&s)
}

// status sends a Status. A success without a code is 200.
func (a *answer) status(s *metav1.Status) {
	out := *s
	out.Kind, out.APIVersion = "Status", "v1"
	if out.Details != nil && asksForRetry(out.Code) {
		a.w.Header().Set("Retry-After", strconv.Itoa(int(out.Details.RetryAfterSeconds)))
	}
	a.write(max(int(out.Code), http.StatusOK), a.form.statusBody(&out))
}

func asksForRetry(code int32) bool {
	switch code {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

func (a *answer) write(code int, body []byte) {
	a.w.Header().Set("Content-Type", a.form.encoding.MediaType())
	a.w.WriteHeader(code)
	_, _ = bytes.NewReader(body).WriteTo(a.w) // a client that is gone misses nothing
}

// newStatusError is for the errors that package apierrors has no constructor for.
func newStatusError(code int32, reason metav1.StatusReason, message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}}
}

// Forbidden is the answer of a server that lacks a rule for the user.
func Forbidden(what string) *metav1.Status {
	return &newStatusError(http.StatusForbidden, metav1.StatusReasonForbidden,
		what+" is forbidden: User \"test\" cannot "+what).ErrStatus
}

// Unavailable is the answer of a server that asks to be tried again after some seconds;
// below zero it asks for nothing.
func Unavailable(seconds int32) *metav1.Status {
	s := &newStatusError(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "not now").ErrStatus
	if seconds >= 0 {
		s.Details = &metav1.StatusDetails{RetryAfterSeconds: seconds}
	}
	return s
}

// dry reports whether nothing is to be stored.
func dry(dryRun []string) bool { return slices.Contains(dryRun, metav1.DryRunAll) }
