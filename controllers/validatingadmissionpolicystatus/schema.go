// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package validatingadmissionpolicystatus

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/discovery"
)

// Schema is the part of an OpenAPI v3 schema that says which types the fields of an object have.
type Schema struct {
	Ref         string             `json:"$ref"`
	AllOf       []*Schema          `json:"allOf"`
	Type        string             `json:"type"`
	Format      string             `json:"format"`
	Properties  map[string]*Schema `json:"properties"`
	Items       *Schema            `json:"items"`
	Additional  additional         `json:"additionalProperties"`
	IntOrString bool               `json:"x-kubernetes-int-or-string"`
	Embedded    bool               `json:"x-kubernetes-embedded-resource"`

	Kinds []schema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
}

// additional is the schema of the values of a map. The API has true or false there, too, which say
// nothing about types.
type additional struct{ *Schema }

// UnmarshalJSON implements json.Unmarshaler.
func (a *additional) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '{' {
		return nil
	}
	a.Schema = &Schema{}
	return json.Unmarshal(data, a.Schema)
}

// Document is an OpenAPI v3 document: the schemas of a group and version.
type Document struct {
	Components struct {
		Schemas map[string]*Schema `json:"schemas"`
	} `json:"components"`
}

// Of returns the schema of a kind with all references resolved, nil if the document does not have
// the kind.
func (d *Document) Of(kind schema.GroupVersionKind) *Schema {
	for name, s := range d.Components.Schemas {
		if s != nil && slices.Contains(s.Kinds, kind) {
			left := mostSchemas
			return d.resolve(s, []string{name}, &left)
		}
	}
	return nil
}

// mostSchemas is how many schemas one kind has, at most: references to references could make any
// number of them. A Deployment has some 3,000.
const mostSchemas = 200_000

// refPrefix is what references begin with.
const refPrefix = "#/components/schemas/"

// reference returns the name of the schema that s refers to. A reference that has a description is
// within an allOf.
func (s *Schema) reference() string {
	if s.Ref != "" {
		return strings.TrimPrefix(s.Ref, refPrefix)
	}
	for _, each := range s.AllOf {
		if each == nil {
			continue
		}
		if name := each.reference(); name != "" {
			return name
		}
	}
	return ""
}

// resolve returns a schema without references. A schema within itself is an object of which nothing
// is known, and so is one that the document does not have. within are the references that lead to s,
// and left counts down from mostSchemas.
// Source: k8s.io/apiserver/pkg/cel/openapi/resolver, PopulateRefs.
func (d *Document) resolve(s *Schema, within []string, left *int) *Schema {
	if s == nil {
		return nil
	}
	if name := s.reference(); name != "" {
		referred := d.Components.Schemas[name]
		if referred == nil || slices.Contains(within, name) || *left <= 0 {
			return &Schema{Type: "object"}
		}
		s, within = referred, append(slices.Clip(within), name)
	}
	*left--
	resolved := *s
	resolved.Items = d.resolve(s.Items, within, left)
	resolved.Additional.Schema = d.resolve(s.Additional.Schema, within, left)
	if s.Properties != nil {
		resolved.Properties = make(map[string]*Schema, len(s.Properties))
		for name, property := range s.Properties {
			resolved.Properties[name] = d.resolve(property, within, left)
		}
	}
	return &resolved
}

// schemas reads schemas from the server, each document once.
type schemas struct {
	client  *client.Client
	failed  map[schema.GroupVersion]error // of discovery
	answers map[schema.GroupVersion]answer
}

// answer is a document, or why it cannot be read.
type answer struct {
	document *Document
	err      error
}

// of returns the schema of a kind, nil if the server does not serve it. An error is about the document, and so about all
// kinds of its group and version.
func (s *schemas) of(ctx context.Context, kind schema.GroupVersionKind) (*Schema, error) {
	version := kind.GroupVersion()
	a, read := s.answers[version]
	if !read {
		if a.document, a.err = s.read(ctx, version); a.err != nil {
			a.err = fmt.Errorf("reading the OpenAPI schemas of %s: %w", version, a.err)
		}
		if s.answers == nil {
			s.answers = map[schema.GroupVersion]answer{}
		}
		s.answers[version] = a
	}
	if a.err != nil {
		return nil, a.err
	}
	return a.document.Of(kind), nil
}

// with returns those of the kinds that have a schema, and adds the others to u. A kind that is served in another of the versions that
// were asked for is not among those that are not served.
func (s *schemas) with(ctx context.Context, kinds []schema.GroupVersionKind, u *unknown) (known []Kind) {
	settled := map[schema.GroupKind]bool{}
	for _, kind := range kinds {
		of, err := s.of(ctx, kind)
		switch {
		case err != nil:
			u.cannotRead(kind.GroupVersion(), kind.GroupKind().String(), err)
		case of != nil:
			known = append(known, Kind{kind, of})
		case s.failed[kind.GroupVersion()] != nil: // an API server may drop the document of a server that is away
			u.cannotRead(kind.GroupVersion(), kind.GroupKind().String(), s.failed[kind.GroupVersion()])
		default:
			continue
		}
		settled[kind.GroupKind()] = true
	}
	for _, kind := range kinds {
		if of := kind.GroupKind(); !settled[of] {
			u.notServed, settled[of] = append(u.notServed, of.String()), true
		}
	}
	return known
}

// read reads a document. An aggregated server may not answer at all, and must not keep the policy from being checked with the
// kinds of others.
func (s *schemas) read(ctx context.Context, version schema.GroupVersion) (*Document, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, discovery.Patience, errNoAnswer)
	defer cancel()
	path := "/openapi/v3/apis/" + version.String()
	if version.Group == "" {
		path = "/openapi/v3/api/" + version.Version
	}
	document := &Document{}
	answer, err := s.client.Request(http.MethodGet).Path(path).Accept("application/json").Do(ctx)
	if apierrors.IsNotFound(err) {
		return document, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(answer.Body, document); err != nil {
		return nil, err
	}
	return document, nil
}

// errNoAnswer is the cause of the end of a request that took too long.
var errNoAnswer = fmt.Errorf("no answer within %s: %w", discovery.Patience, context.DeadlineExceeded)
