// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/setpoint-io/setpoint/wire"
)

// yamlType is the media type of YAML, as kubectl and curl send it.
const yamlType = "application/yaml"

// mediaType returns a request's media type without parameters; JSON if it says none.
func (q *Request) mediaType() string {
	t, _, err := mime.ParseMediaType(q.HTTP.Header.Get("Content-Type"))
	if err != nil {
		return wire.JSON.MediaType()
	}
	return t
}

// payload is the body of a request: JSON, or the object of a protobuf message.
type payload struct {
	kind    schema.GroupVersionKind // that the body says it is
	text    []byte
	message runtime.Object // nil if the body is JSON
}

// json returns the payload as JSON.
func (p payload) json() ([]byte, error) {
	if p.message == nil {
		return p.text, nil
	}
	return json.Marshal(p.message)
}

// open reads the body that a request brings.
func (q *Request) open(body []byte) (p payload, err error) {
	switch t := q.mediaType(); t {
	case wire.JSON.MediaType():
	case yamlType:
		if body, err = yaml.YAMLToJSON(body); err != nil {
			return p, apierrors.NewBadRequest(err.Error())
		}
	case wire.Protobuf.MediaType():
		return openProtobuf(body)
	default:
		return p, newStatusError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
			"the body of the request was in an unknown format - accepted media types include: "+mediaTypes)
	}
	var meta metav1.TypeMeta
	if err := json.Unmarshal(body, &meta); err != nil {
		return p, fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
	}
	return payload{kind: schema.FromAPIVersionAndKind(meta.APIVersion, meta.Kind), text: body}, nil
}

// openProtobuf reads a message of a built-in kind.
func openProtobuf(body []byte) (payload, error) {
	apiVersion, kind, raw, err := wire.Protobuf.Open(body)
	p := payload{kind: schema.FromAPIVersionAndKind(apiVersion, kind), message: &metav1.DeleteOptions{}}
	if err != nil {
		return p, apierrors.NewBadRequest(err.Error())
	}
	if kind != "DeleteOptions" { // one of every group
		if p.message, err = scheme.Scheme.New(p.kind); err != nil {
			return p, apierrors.NewBadRequest(err.Error())
		}
	}
	if err := wire.Protobuf.Decode(raw, p.message); err != nil {
		return p, apierrors.NewBadRequest(err.Error())
	}
	return p, nil
}

// object reads the object that a request brings.
func (r *Resource) object(q *Request, body []byte, validation string) (*unstructured.Unstructured, []string, error) {
	p, err := q.open(body)
	if err == nil && p.kind.Kind == "" && !r.builtin {
		err = fmt.Errorf("Object 'Kind' is missing in '%s'", body) //nolint:staticcheck // upstream's words
	}
	if _, refused := err.(apierrors.APIStatus); err != nil && !refused {
		err = apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)", r.Kind, err, summary(body)))
	}
	if err != nil {
		return nil, nil, err
	}
	if !p.kind.Empty() && p.kind != r.GroupVersionKind() {
		return nil, nil, r.otherKind(p.kind)
	}
	if p.message != nil { // it has no field that its Go type lacks
		o, err := r.untyped(p.message)
		return o, nil, err
	}
	o, warnings, err := r.parse(p.text, validation)
	if err != nil {
		return nil, nil, r.cannotHandle(r.GroupVersionKind(), err)
	}
	return o, warnings, nil
}

// summary is the beginning of a body. Source: k8s.io/apiserver/pkg/endpoints/handlers,
// summarizeData.
func summary(body []byte) string {
	const longest = 30
	if len(body) > longest {
		return string(body[:longest]) + " ..."
	}
	return string(body)
}

// otherKind is the error for an object of another kind than the path's.
func (r *Resource) otherKind(kind schema.GroupVersionKind) error {
	if _, err := scheme.Scheme.New(kind); err != nil && r.builtin {
		return r.cannotHandle(kind, err)
	}
	if kind.Kind == r.Kind {
		return apierrors.NewBadRequest(fmt.Sprintf(
			"the API version in the data (%s) does not match the expected API version (%s)", kind.GroupVersion(), r.GroupVersion()))
	}
	return r.cannotHandle(kind, fmt.Errorf("converting (%s) to (%s): unknown conversion", kind.Kind, r.Kind))
}

func (r *Resource) cannotHandle(kind schema.GroupVersionKind, err error) error {
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", kind.Kind, kind.Version, r.Kind, err))
}

// parse reads an object from JSON. That of a built-in kind goes through the Go type:
// fields that it does not have are dropped, with a warning, or refused.
func (r *Resource) parse(text []byte, validation string) (*unstructured.Unstructured, []string, error) {
	var content map[string]any
	var strict []error
	if o := r.newTyped(); o != nil {
		var err error
		if strict, err = kjson.UnmarshalStrict(text, o); err != nil {
			return nil, nil, err
		}
		if content, err = runtime.DefaultUnstructuredConverter.ToUnstructured(o); err != nil {
			return nil, nil, err
		}
	} else {
		if err := utiljson.Unmarshal(text, &content); err != nil {
			return nil, nil, err
		}
		if content == nil {
			content = map[string]any{}
		}
		if err := coerceMetadata(content); err != nil {
			return nil, nil, err
		}
	}
	warnings := make([]string, len(strict))
	for i, err := range strict {
		warnings[i] = err.Error()
	}
	switch {
	case len(warnings) == 0 || validation == metav1.FieldValidationIgnore:
		warnings = nil
	case validation == metav1.FieldValidationStrict:
		return nil, nil, fmt.Errorf("strict decoding error: %s", strings.Join(warnings, ", "))
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(r.GroupVersionKind())
	return u, warnings, nil
}

// untyped turns an object of a Go type into what the server stores.
func (r *Resource) untyped(o runtime.Object) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(r.GroupVersionKind())
	return u, nil
}

// coerceMetadata takes the metadata of a custom object through its Go type.
func coerceMetadata(content map[string]any) error {
	metadata, there := content["metadata"]
	if !there {
		return nil
	}
	text, err := json.Marshal(metadata)
	if err != nil {
		return err
	}
	var typed metav1.ObjectMeta
	if err := json.Unmarshal(text, &typed); err != nil {
		return err
	}
	content["metadata"], err = runtime.DefaultUnstructuredConverter.ToUnstructured(&typed)
	return err
}

// deleteOptions reads the options of a deletion, from its body or its query.
func (q *Request) deleteOptions(body []byte) (*metav1.DeleteOptions, error) {
	options := &metav1.DeleteOptions{}
	if len(body) == 0 {
		query := q.HTTP.URL.Query()
		if err := metav1.Convert_url_Values_To_v1_DeleteOptions(&query, options, nil); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return options, nil
	}
	p, err := q.open(body)
	if err != nil {
		return nil, err
	}
	text, err := p.json()
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, options); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return options, nil
}
