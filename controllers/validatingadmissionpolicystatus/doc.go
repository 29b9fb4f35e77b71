// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validatingadmissionpolicystatus checks the types in the expressions of
// ValidatingAdmissionPolicies.
//
// An API server compiles the expressions of a policy without the types of the objects that the
// policy will see: object.spec.replicsa compiles, and fails with the first request. This controller
// compiles each expression again, once for each kind that the policy matches, and writes what does
// not fit into status.typeChecking. The policy works as before: what the status has are warnings.
//
// # What it watches and writes
//
// It watches ValidatingAdmissionPolicies, and writes status.typeChecking and
// status.observedGeneration by server-side apply, as the field manager
// "validatingadmissionpolicy-status". It reads from the server which kinds it serves, and the
// OpenAPI schemas of those that a policy matches.
//
// # How it checks
//
//   - A generation of a policy is checked once, with all kinds that are known. A policy of which
//     kinds are not served, or not known because an aggregated server is away, is checked with the
//     others, and again with growing pauses until all are known.
//   - A status does not say with which kinds a policy was checked. So each process looks once at
//     each policy that was checked before: it asks which kinds the server serves, and checks those
//     policies again that name custom kinds, which may have been defined since, or kinds that are
//     not served. It writes if the warnings differ.
//   - The warnings about a kind stay while the kind cannot be read.
//   - The kinds are those of spec.matchConstraints.resourceRules without wildcards, ten for each
//     rule at most. Subresources have no type of their own and are left out.
//   - The variables object and oldObject have the kind's type, params has that of spec.paramKind,
//     and request, namespaceObject, authorizer and variables have the types that they have in an API
//     server. The type of a variable of the policy is that of its expression.
//   - Checked are the expressions and the message expressions of spec.validations.
//
// The language is that of API servers of 1.37: package cel-go with the same options and
// libraries, and with Kubernetes' own functions. Only their signatures are declared here
// (functions.go), since nothing is evaluated: the module k8s.io/apiserver, which has them, requires
// etcd and gRPC. cel-go makes the program 9.5 MB larger, of which an idle manager has some 5 MB of
// clean pages and 0.7 MB of memory; a program of its own for one controller was not worth them. A test of the module of the control plane compares the warnings with upstream's
// checker, and the functions with upstream's libraries, name by name.
//
// Behaviour is that of kube-controller-manager's controller of the same name
// (k8s.io/kubernetes/pkg/controller/validatingadmissionpolicystatus and
// k8s.io/apiserver/pkg/admission/plugin/policy/validating). It differs on purpose in this:
//
//   - Schemas come from the server, for built-in kinds too: they are those of its version.
//   - Names of types in warnings are the same each time. Upstream's have a number from the clock.
//   - authorizer.requestResource is known. Upstream warns of it.
//   - A kind that is not served yet, or that cannot be read, is looked for again, with growing
//     pauses and in the next process too. Upstream checks the policy without it, and not again.
package validatingadmissionpolicystatus
