// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// patch changes an object by a patch of any sort.
func (r *Resource) patch(q *Request, body []byte) (result, error) {
	var options metav1.PatchOptions
	query := q.HTTP.URL.Query()
	if err := metav1.Convert_url_Values_To_v1_PatchOptions(&query, &options, nil); err != nil {
		return result{}, apierrors.NewBadRequest(err.Error())
	}
	patchType := types.PatchType(q.mediaType())
	if err := r.accepts(patchType); err != nil {
		return result{}, err
	}
	if errs := metav1validation.ValidatePatchOptions(&options, patchType); len(errs) > 0 {
		return result{}, apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("PatchOptions").GroupKind(), "", errs)
	}
	w := &writing{dry: dry(options.DryRun), manager: q.manager(options.FieldManager), validation: options.FieldValidation}
	r.mu.Lock()
	defer r.mu.Unlock()
	if patchType == types.ApplyYAMLPatchType {
		return r.apply(q, w, body, options.Force != nil && *options.Force)
	}
	if q.Subresource == "scale" {
		return r.patchScale(q, w, patchType, body)
	}
	next, err := r.update(q, w, func(now *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		next, err := r.patched(now, patchType, body, w)
		if err != nil {
			return nil, err
		}
		return next, q.checkPlace(next)
	})
	return result{code: http.StatusOK, object: next, warnings: w.warnings}, err
}

// accepts refuses patches of a sort that the resource does not have.
func (r *Resource) accepts(t types.PatchType) error {
	have := []string{string(types.JSONPatchType), string(types.MergePatchType), string(types.ApplyYAMLPatchType)}
	if r.builtin {
		have = append(have, string(types.StrategicMergePatchType))
	}
	if slices.Contains(have, string(t)) {
		return nil
	}
	if r.builtin {
		return unnamed(http.StatusUnsupportedMediaType, "415: Unsupported Media Type")
	}
	return newStatusError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		"the body of the request was in an unknown format - accepted media types include: "+strings.Join(have, ", "))
}

// patched returns what a patch makes of an object.
func (r *Resource) patched(now *unstructured.Unstructured, t types.PatchType, body []byte, w *writing) (*unstructured.Unstructured, error) {
	changed, err := applyPatch(now.Object, t, body, r.newTyped())
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(changed)
	if err != nil {
		return nil, err
	}
	next, warnings, err := r.parse(text, w.validation)
	if err != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
			field.Invalid(field.NewPath("patch"), string(text), err.Error()),
		})
	}
	w.warnings = warnings
	return next, nil
}

// applyPatch returns an object with a patch. example is of the Go type that says how a
// strategic merge patch merges lists.
func applyPatch(now map[string]any, t types.PatchType, body []byte, example any) (any, error) {
	switch t {
	case types.JSONPatchType:
		var operations []operation
		if err := json.Unmarshal(body, &operations); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
		return applyOperations(now, operations)
	case types.StrategicMergePatchType:
		var change map[string]any
		if err := utiljson.Unmarshal(body, &change); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
		changed, err := strategicpatch.StrategicMergeMapPatch(now, change, example)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return map[string]any(changed), nil
	default: // a merge patch
	}
	var change map[string]any
	if err := utiljson.Unmarshal(body, &change); err != nil {
		return nil, apierrors.NewBadRequest("invalid JSON patch")
	}
	return merge(now, change), nil
}

// merge applies a JSON merge patch. Source: RFC 7386.
func merge(target any, patch any) any {
	change, isObject := patch.(map[string]any)
	if !isObject {
		return patch
	}
	before, _ := target.(map[string]any)
	result := make(map[string]any, len(before))
	maps.Copy(result, before)
	for name, value := range change {
		if value == nil {
			delete(result, name)
			continue
		}
		result[name] = merge(result[name], value)
	}
	return result
}
