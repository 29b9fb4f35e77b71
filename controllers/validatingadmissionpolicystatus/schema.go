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
	client    *client.Client
	documents map[schema.GroupVersion]*Document
}

// of returns the schema of a kind, nil if the server does not serve it.
func (s *schemas) of(ctx context.Context, kind schema.GroupVersionKind) (*Schema, error) {
	version := kind.GroupVersion()
	document, read := s.documents[version]
	if !read {
		var err error
		if document, err = s.read(ctx, version); err != nil {
			return nil, fmt.Errorf("reading the OpenAPI schemas of %s: %w", version, err)
		}
		if s.documents == nil {
			s.documents = map[schema.GroupVersion]*Document{}
		}
		s.documents[version] = document
	}
	return document.Of(kind), nil
}

// with returns kinds with their schemas. A kind that is served in another of the versions that were
// asked for is not among the unknown ones.
func (s *schemas) with(ctx context.Context, kinds []schema.GroupVersionKind) (known []Kind, unknown []string, err error) {
	for _, kind := range kinds {
		of, err := s.of(ctx, kind)
		if err != nil {
			return nil, nil, err
		}
		if of != nil {
			known = append(known, Kind{kind, of})
		}
	}
	for _, kind := range kinds {
		if !slices.ContainsFunc(known, func(k Kind) bool { return k.Kind.GroupKind() == kind.GroupKind() }) {
			unknown = append(unknown, kind.GroupKind().String())
		}
	}
	return known, slices.Compact(unknown), nil
}

func (s *schemas) read(ctx context.Context, version schema.GroupVersion) (*Document, error) {
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
