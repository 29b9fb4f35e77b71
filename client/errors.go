// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// maxErrorBody is how much of an error's body is read, in bytes: a Status with
// many causes fits, a page of HTML is cut.
const maxErrorBody = 64 << 10

// unansweredError is an error without an answer.
type unansweredError struct {
	request string
	server  string
	cause   error
}

func (e *unansweredError) Error() string {
	return fmt.Sprintf("%s: no answer from %s: %v", e.request, e.server, e.cause)
}

func (e *unansweredError) Unwrap() error { return e.cause }

// unreadableError is the error of an answer that says that all went well and cannot be read.
type unreadableError struct{ error }

func (e *unreadableError) Unwrap() error { return e.error }

// NotSentError is the error of a request that was not sent: a transport refused it, or its
// context ended while it waited for earlier requests. The server has received nothing of it.
type NotSentError struct{ Cause error }

func (e *NotSentError) Error() string { return "not sent: " + e.Cause.Error() }

// Unwrap returns the reason.
func (e *NotSentError) Unwrap() error { return e.Cause }

// unanswered wraps an error of the transport. net/http puts the whole URL into its errors;
// unanswered replaces it with the description of the request.
func (r *Request) unanswered(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if refused, ok := errors.AsType[*NotSentError](err); ok {
		return fmt.Errorf("%s: %w", r, refused)
	}
	return &unansweredError{request: r.String(), server: r.client.Server(), cause: err}
}

// Unanswered reports whether the server may or may not have carried out the request: the
// connection broke after the request may have been sent, the request timed out, the answer
// cannot be read, or it is a server error. If the server could not be reached at all, or if it
// refused the request, Unanswered returns false.
func Unanswered(err error) bool {
	if err == nil || Unreachable(err) {
		return false
	}
	if _, ok := errors.AsType[*NotSentError](err); ok {
		return false
	}
	if _, ok := errors.AsType[*unansweredError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*unreadableError](err); ok {
		return true
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code >= 500
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// codeOf returns the HTTP status of the answer that an error is of, or 0.
func codeOf(err error) int {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return int(status.Status().Code)
	}
	return 0
}

// Unreachable reports whether err is that no connection could be made.
func Unreachable(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// statusError turns an answer that is an error into one.
func (r *Request) statusError(response *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	if err != nil {
		return r.unanswered(err)
	}
	seconds := 0
	if wait, again := retryAfter(response); again {
		seconds = int(wait.Seconds())
	}
	var status metav1.Status
	if decodeStatus(response.Header.Get("Content-Type"), body, &status) == nil && status.Status == metav1.StatusFailure {
		if status.Code == 0 {
			status.Code = int32(response.StatusCode)
		}
		if status.Details == nil && seconds > 0 { // only the header says when
			status.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(seconds)}
		}
		if d := status.Details; d != nil { // the body has the same bound as the header
			d.RetryAfterSeconds = min(max(d.RetryAfterSeconds, 0), int32(maxRetryAfter/time.Second))
		}
		return &apierrors.StatusError{ErrStatus: status}
	}
	text := strings.TrimSpace(string(body))
	if len(text) > 1024 {
		text = text[:1024] + "…"
	}
	resource := r.resource.GroupVersionResource().GroupResource()
	return apierrors.NewGenericServerResponse(response.StatusCode, strings.ToLower(r.method), resource, r.name, text, seconds, true)
}

func decodeStatus(contentType string, body []byte, into *metav1.Status) error {
	encoding, err := wire.EncodingOf(contentType)
	if err != nil {
		return err
	}
	_, kind, raw, err := encoding.Open(body)
	if err != nil {
		return err
	}
	if kind != "Status" {
		return fmt.Errorf("%q is no Status", kind)
	}
	return encoding.Decode(raw, into)
}

// Absent reports whether err is the answer of a server that the object of a request does not exist: there is none of
// its name, or the request was a patch with a UID and another object has the name by now. Not every
// 404 (apierrors.IsNotFound) is: a server that is older than another one beside it, or that
// has just lost a kind, answers 404 about objects that exist, and so does a proxy without
// servers. Use Absent before acting on the absence of an object.
//
// A server that has looked up an object names it in its answer. If it serves the group, but not
// the kind or version, its Status has no name (k8s.io/apiserver/pkg/server,
// serviceErrorHandler). If it does not serve the group, there is no Status, and this package
// notes that as the cause.
//
// A patch whose UID is that of another object is invalid (422), with the UID as the cause: a UID cannot be changed. A
// conflict (409) says of a patch that other writes came first. Of a deletion or an update with a UID it may say either.
// Source: k8s.io/apimachinery/pkg/api/validation, ValidateObjectMetaAccessorUpdate.
func Absent(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || status.ErrStatus.Details == nil || status.ErrStatus.Details.Name == "" {
		return false
	}
	if apierrors.IsInvalid(err) {
		return slices.ContainsFunc(status.ErrStatus.Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
	}
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// AbsentAt is [Absent] for the object of this name, and not for another object such as its
// namespace.
func AbsentAt(err error, key object.Key) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && Absent(err) && status.ErrStatus.Details.Name == key.Name
}

// NamespaceGone reports whether a create was refused because its namespace is being deleted or
// does not exist. A retry does not help. If the object was created for another object of the
// namespace, no Event is needed: the other object will be deleted too.
//
// Source of the two answers: k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle.
func NamespaceGone(err error) bool {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return true
	}
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && Absent(err) && status.ErrStatus.Details.Kind == "namespaces"
}

// LacksRight reports whether a request was refused because the user of the credentials lacks a
// right. Admission, such as a quota that is used up, refuses with the same code and reason,
// and does not say what the user cannot do.
// Source of the words: k8s.io/apiserver/pkg/endpoints/handlers/responsewriters, ForbiddenStatusError.
func LacksRight(err error) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}
	_, user, found := strings.Cut(err.Error(), `User "`)
	return found && strings.Contains(user, " cannot ")
}
