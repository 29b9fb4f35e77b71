// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/object"
)

// Request is a request for a resource, as the server understands it.
type Request struct {
	// Verb is that of RBAC: "get", "list", "watch", "create", "update", "patch",
	// "delete" or "deletecollection".
	Verb     string
	Resource object.Resource
	// Key has no name in requests for a collection.
	Key         object.Key
	Subresource string // such as "status", or ""
	// HTTP is the request itself. Its body is the server's to read.
	HTTP *http.Request
}

// String returns the verb and the path, as in "delete /api/v1/namespaces/ns/pods/web".
func (q Request) String() string { return q.Verb + " " + q.HTTP.URL.Path }

// maxBody is how long a request's body can be. Source: k8s.io/apiserver/pkg/server,
// MaxRequestBodyBytes.
const maxBody = 3 << 20

// body reads the body.
func (q *Request) body() ([]byte, error) {
	if q.HTTP.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(q.HTTP.Body, maxBody+1))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if len(body) > maxBody {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	}
	return body, nil
}

// place is what a path names.
type place struct {
	group, version, plural string
	key                    object.Key
	subresource            string
}

// parsePath reads /api/v1/[namespaces/NAMESPACE/]PLURAL[/NAME[/SUBRESOURCE]], or the same
// with /apis/GROUP/VERSION.
func parsePath(path string) (p place, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		p.version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		p.group, p.version, parts = parts[1], parts[2], parts[3:]
	default:
		return place{}, false
	}
	// The path of a Namespace's subresource looks like that of a collection in it.
	if len(parts) > 2 && parts[0] == "namespaces" && (len(parts) > 3 || parts[2] != "status" && parts[2] != "finalize") {
		p.key.Namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 3 {
		return place{}, false
	}
	p.plural = parts[0]
	if len(parts) > 1 {
		p.key.Name = parts[1]
	}
	if len(parts) > 2 {
		p.subresource = parts[2]
	}
	return p, true
}

// understand reads a request. The resource is nil if the server does not serve what the
// path names.
func (s *Server) understand(r *http.Request) (*Request, *Resource) {
	p, ok := parsePath(r.URL.Path)
	if !ok {
		return nil, nil
	}
	resource := s.find(p.group, p.version, p.plural)
	if resource == nil || !resource.Namespaced && p.key.Namespace != "" || resource.Namespaced && p.key.Name != "" && p.key.Namespace == "" {
		return nil, nil
	}
	verb := verbOf(r, p.key.Name != "")
	if verb == "" {
		return nil, nil
	}
	return &Request{Verb: verb, Resource: resource.Resource, Key: p.key, Subresource: p.subresource, HTTP: r}, resource
}

// verbOf returns the verb of a request, or "".
func verbOf(r *http.Request, named bool) string {
	switch r.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if named {
			return "delete"
		}
		return "deletecollection"
	case http.MethodGet, http.MethodHead:
	default:
		return ""
	}
	watching := r.URL.Query().Get("watch")
	switch {
	case named:
		return "get"
	case watching == "true" || watching == "1":
		return "watch"
	}
	return "list"
}

// allows refuses what the resource does not have.
func (r *Resource) allows(q *Request) error {
	collection := q.Verb == "create" || q.Verb == "list" || q.Verb == "watch" || q.Verb == "deletecollection"
	switch {
	case q.Subresource != "" && !r.has(q.Subresource):
		return r.noSubresource(q)
	case !slices.Contains(r.verbs, q.Verb), collection == (q.Key.Name != ""), q.Subresource != "" && (collection || q.Verb == "delete"),
		r.Namespaced && q.Key.Namespace == "" && (q.Verb == "create" || q.Verb == "deletecollection"):
		return unnamed(http.StatusMethodNotAllowed, "")
	}
	return nil
}

// unnamed is an error that does not say what it is about. The message "" is the usual one
// of the code.
func unnamed(code int, message string) error {
	err := apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", "", 0, false)
	if message != "" {
		err.ErrStatus.Message = message
	}
	return err
}

// beyond are the subresources that a real server has and this one does not.
var beyond = []string{
	"approval", "attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "portforward", "proxy", "resize", "scale", "token",
}

func (r *Resource) noSubresource(q *Request) error {
	switch {
	case slices.Contains(beyond, q.Subresource):
		return newStatusError(http.StatusNotImplemented, "NotImplemented", fmt.Sprintf(
			"fakeapi does not implement %s/%s: answer such requests in Before", r.Resource, q.Subresource))
	case !r.builtin:
		return r.notFound(q.Key.Name)
	}
	return unnamed(http.StatusNotFound, "")
}
