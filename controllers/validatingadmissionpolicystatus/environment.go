// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package validatingadmissionpolicystatus

import (
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
)

// Language returns the environment of all policies, without variables.
// Source: k8s.io/apiserver/pkg/cel/environment, baseOpts, those for stored expressions.
var Language = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(append([]cel.EnvOption{
		cel.HomogeneousAggregateLiterals(),
		cel.EagerlyValidateDeclarations(true), // once, and not for each kind
		cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true),
		cel.OptionalTypes(),
		cel.ASTValidators(
			cel.ValidateDurationLiterals(),
			cel.ValidateTimestampLiterals(),
			cel.ValidateRegexLiterals(),
			cel.ValidateHomogeneousAggregateLiterals(),
		),
		ext.Strings(ext.StringsVersion(2)),
		ext.Sets(),
		ext.TwoVarComprehensions(),
		ext.Lists(ext.ListsVersion(3)),
	}, declare()...)...)
})

// variablesType is the type of the variable variables, whose fields are those of the policy.
const variablesType = "kubernetes.variables"

// fixed returns the object types that are the same for all policies.
// Source: k8s.io/apiserver/pkg/admission/plugin/cel, BuildRequestType and BuildNamespaceType.
func fixed() objects {
	var (
		text, yes, when = cel.StringType, cel.BoolType, cel.TimestampType
		texts           = cel.ListType(text)
		labels          = cel.MapType(text, text)
		kind            = cel.ObjectType("kubernetes.GroupVersionKind")
		resource        = cel.ObjectType("kubernetes.GroupVersionResource")
	)
	return objects{
		variablesType:                     {},
		"kubernetes.GroupVersionKind":     {"group": text, "version": text, "kind": text},
		"kubernetes.GroupVersionResource": {"group": text, "version": text, "resource": text},
		"kubernetes.UserInfo": {
			"username": text, "uid": text, "groups": texts, "extra": cel.MapType(text, texts),
		},
		"kubernetes.AdmissionRequest": {
			"kind": kind, "resource": resource, "subResource": text,
			"requestKind": kind, "requestResource": resource, "requestSubResource": text,
			"name": text, "namespace": text, "operation": text,
			"userInfo": cel.ObjectType("kubernetes.UserInfo"), "dryRun": yes, "options": cel.DynType,
		},
		"kubernetes.NamespaceSpec":      {"finalizers": texts},
		"kubernetes.NamespaceCondition": {"status": text, "type": text, "lastTransitionTime": when, "message": text, "reason": text},
		"kubernetes.NamespaceStatus":    {"conditions": cel.ListType(cel.ObjectType("kubernetes.NamespaceCondition")), "phase": text},
		"kubernetes.NamespaceMetadata": {
			"name": text, "generateName": text, "namespace": text, "labels": labels, "annotations": labels, "UID": text,
			"creationTimestamp": when, "deletionGracePeriodSeconds": cel.IntType, "deletionTimestamp": when,
			"generation": cel.IntType, "resourceVersion": text, "finalizers": texts,
		},
		"kubernetes.Namespace": {
			"metadata": cel.ObjectType("kubernetes.NamespaceMetadata"),
			"spec":     cel.ObjectType("kubernetes.NamespaceSpec"),
			"status":   cel.ObjectType("kubernetes.NamespaceStatus"),
		},
	}
}

// environment returns the environment of a policy for one kind: the language with the variables of
// the policy. The fields of its variable variables are added to the object types afterwards.
// hasParams says that the policy has parameters; their schema may be nil.
func environment(kind Kind, hasParams bool, params *Schema) (*cel.Env, objects, error) {
	base, err := Language()
	if err != nil {
		return nil, nil, err
	}
	known := fixed()
	variable := func(name string, s *Schema, typ string) cel.EnvOption {
		if t := known.typeOf(s, typ, true); t != nil {
			return cel.Variable(name, t)
		}
		return cel.Variable(name, cel.DynType)
	}
	options := []cel.EnvOption{
		cel.Variable("namespaceObject", cel.ObjectType("kubernetes.Namespace")),
		cel.Variable("request", cel.ObjectType("kubernetes.AdmissionRequest")),
		cel.Variable("variables", cel.ObjectType(variablesType)),
		cel.Variable("authorizer", authorizerType),
		cel.Variable("authorizer.requestResource", resourceCheckType),
		variable("object", kind.Schema, kind.Kind.Kind),
		variable("oldObject", kind.Schema, kind.Kind.Kind),
	}
	if hasParams {
		options = append(options, variable("params", params, "params"))
	}
	options = append(options, cel.CustomTypeProvider(&provider{base.CELTypeProvider(), known}))
	env, err := base.Extend(options...)
	return env, known, err
}
