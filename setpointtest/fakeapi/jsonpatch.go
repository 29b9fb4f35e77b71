// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// operation is a step of a JSON patch. Source: RFC 6902.
type operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	From  string          `json:"from"`
	Value json.RawMessage `json:"value"`
}

// maxOperations is how many steps a patch can have. Source:
// k8s.io/apiserver/pkg/endpoints/handlers, maxJSONPatchOperations.
const maxOperations = 10_000

// applyOperations returns an object with all steps of a JSON patch, or an error and no
// step.
func applyOperations(now map[string]any, operations []operation) (any, error) {
	if len(operations) > maxOperations {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"The allowed maximum operations in a JSON patch is %d, got %d", maxOperations, len(operations)))
	}
	var document any = runtime.DeepCopyJSON(now)
	for _, o := range operations {
		var err error
		if document, err = o.apply(document); err != nil {
			return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
		}
	}
	return document, nil
}

func (o *operation) apply(document any) (any, error) {
	var value any
	switch o.Op {
	case "add", "replace", "test":
		if len(o.Value) == 0 {
			return nil, fmt.Errorf("%s operation at %q has no value", o.Op, o.Path)
		}
		if err := utiljson.Unmarshal(o.Value, &value); err != nil {
			return nil, err
		}
	case "move", "copy":
		from, err := at(document, o.From)
		if err != nil {
			return nil, err
		}
		value = runtime.DeepCopyJSONValue(from)
	case "remove":
	default:
		return nil, fmt.Errorf("unexpected kind of operation: %q", o.Op)
	}
	switch o.Op {
	case "test":
		have, err := at(document, o.Path)
		if err != nil && value != nil {
			return nil, err
		}
		if !reflect.DeepEqual(have, value) {
			return nil, fmt.Errorf("testing value %s failed", o.Path)
		}
		return document, nil
	case "remove":
		return edit(document, tokens(o.Path), remove, nil)
	case "replace":
		return edit(document, tokens(o.Path), replace, value)
	case "move":
		if strings.HasPrefix(o.Path, o.From+"/") {
			return nil, fmt.Errorf("moving %q into itself", o.From)
		}
		var err error
		if document, err = edit(document, tokens(o.From), remove, nil); err != nil {
			return nil, err
		}
	}
	return edit(document, tokens(o.Path), add, value)
}

// tokens are the steps of a JSON pointer. Source: RFC 6901.
func tokens(path string) []string {
	if path == "" {
		return nil
	}
	all := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, token := range all {
		all[i] = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
	}
	return all
}

// at returns what a pointer leads to.
func at(document any, path string) (any, error) {
	for _, token := range tokens(path) {
		switch in := document.(type) {
		case map[string]any:
			value, there := in[token]
			if !there {
				return nil, missing(path)
			}
			document = value
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(in) {
				return nil, missing(path)
			}
			document = in[i]
		default:
			return nil, missing(path)
		}
	}
	return document, nil
}

func missing(path string) error { return fmt.Errorf("path %q is missing", path) }

// how says what edit does at the end of its path.
type how int

const (
	add how = iota
	replace
	remove
)

// edit returns a document in which the value at a path is another one, or gone. Maps are
// changed in place.
func edit(document any, path []string, do how, value any) (any, error) {
	if len(path) == 0 {
		if do == remove {
			return nil, fmt.Errorf("the whole document cannot be removed")
		}
		return value, nil
	}
	token, last := path[0], len(path) == 1
	switch in := document.(type) {
	case map[string]any:
		inner, there := in[token]
		switch {
		case !there && (!last || do != add):
			return nil, missing(token)
		case last && do == remove:
			delete(in, token)
			return in, nil
		}
		changed, err := edit(inner, path[1:], do, value)
		in[token] = changed
		return in, err
	case []any:
		return editList(in, path, do, value)
	}
	return nil, missing(token)
}

// editList is edit for a list.
func editList(in []any, path []string, do how, value any) (any, error) {
	token, last := path[0], len(path) == 1
	inserts := last && do == add
	i, err := strconv.Atoi(token)
	if inserts && token == "-" {
		i, err = len(in), nil
	}
	if err != nil || i < 0 || i > len(in) || i == len(in) && !inserts {
		return nil, missing(token)
	}
	switch {
	case inserts:
		return append(in[:i:i], append([]any{value}, in[i:]...)...), nil
	case last && do == remove:
		return append(in[:i:i], in[i+1:]...), nil
	}
	changed, err := edit(in[i], path[1:], do, value)
	in[i] = changed
	return in, err
}
