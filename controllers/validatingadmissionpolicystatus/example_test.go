// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package validatingadmissionpolicystatus_test

import (
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policystatus "github.com/setpoint-io/setpoint/controllers/validatingadmissionpolicystatus"
)

// The expression of a policy is compiled for the kinds that the policy matches.
func Example() {
	website := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Website"}
	var document policystatus.Document
	err := json.Unmarshal([]byte(`{"components": {"schemas": {"website": {
		"type": "object", "properties": {"spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}}},
		"x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Website"}]}}}}`), &document)
	if err != nil {
		fmt.Println(err)
		return
	}
	policy := &admissionv1.ValidatingAdmissionPolicy{}
	policy.Spec.Validations = []admissionv1.Validation{{Expression: "object.spec.replicsa < 5"}}
	warnings, err := policystatus.Check(policy, []policystatus.Kind{{Kind: website, Schema: document.Of(website)}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, w := range warnings {
		fmt.Println(w.FieldRef)
		fmt.Print(w.Warning)
	}
	// Output:
	// spec.validations[0].expression
	// example.com/v1, Kind=Website: ERROR: <input>:1:12: undefined field 'replicsa'
	//  | object.spec.replicsa < 5
	//  | ...........^
}
