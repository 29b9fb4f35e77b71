// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package upstreamtest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	validating "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubernetes/pkg/generated/openapi"

	policystatus "github.com/setpoint-io/setpoint/controllers/validatingadmissionpolicystatus"
)

// signaturesOf returns the signatures of the functions of an environment.
func signaturesOf(env *cel.Env) []string {
	var all []string
	for name, function := range env.Functions() {
		for _, o := range function.OverloadDecls() {
			var arguments []string
			for _, a := range o.ArgTypes() {
				arguments = append(arguments, a.String())
			}
			all = append(all, fmt.Sprintf("%s(%s) %s, member: %t", name, strings.Join(arguments, ", "), o.ResultType(), o.IsMemberFunction()))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// A function that is missing here is a false warning for each policy that calls it.
func TestThePoliciesHaveTheFunctionsOfAnAPIServer(t *testing.T) {
	language, err := policystatus.Language()
	if err != nil {
		t.Fatal(err)
	}
	ours := signaturesOf(language)
	theirs := signaturesOf(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).StoredExpressionsEnv())
	for _, s := range theirs {
		if !slices.Contains(ours, s) {
			t.Errorf("there is no %s", s)
		}
	}
	for _, s := range ours {
		if !slices.Contains(theirs, s) {
			t.Errorf("upstream has no %s", s)
		}
	}
	t.Logf("%d signatures", len(theirs))
}

var (
	deployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	pod        = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	configMap  = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
)

// counted is a number that upstream gives the types of a kind, from the clock.
var counted = regexp.MustCompile(`\b(Deployment|Pod|ConfigMap|params)\d+`)

func TestTheWarningsForPoliciesAreUpstreams(t *testing.T) {
	schemas := resolver.NewDefinitionsSchemaResolver(openapi.GetOpenAPIDefinitions, scheme.Scheme)
	mapper := apimeta.NewDefaultRESTMapper(nil)
	for _, kind := range []schema.GroupVersionKind{deployment, pod, configMap} {
		mapper.Add(kind, apimeta.RESTScopeNamespace)
	}
	checker := &validating.TypeChecker{SchemaResolver: schemas, RestMapper: mapper}
	read := func(kind schema.GroupVersionKind) *policystatus.Schema {
		t.Helper()
		upstream, err := schemas.ResolveSchema(kind)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(upstream)
		if err != nil {
			t.Fatal(err)
		}
		ours := &policystatus.Schema{}
		if err := json.Unmarshal(text, ours); err != nil {
			t.Fatal(err)
		}
		return ours
	}
	kinds := []policystatus.Kind{{Kind: pod, Schema: read(pod)}, {Kind: deployment, Schema: read(deployment)}}

	policy := func(expressions ...string) *admissionv1.ValidatingAdmissionPolicy {
		p := &admissionv1.ValidatingAdmissionPolicy{}
		p.Spec.ParamKind = &admissionv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
		p.Spec.MatchConstraints = &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{
			{RuleWithOperations: admissionv1.RuleWithOperations{Rule: admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}}}},
			{RuleWithOperations: admissionv1.RuleWithOperations{Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}},
		}}
		p.Spec.Variables = []admissionv1.Variable{
			{Name: "name", Expression: "object.metadata.name"},
			{Name: "labels", Expression: "object.metadata.labels"},
			{Name: "owners", Expression: "object.metadata.ownerReferences"},
			{Name: "broken", Expression: "object.nothing"},
			{Name: "longName", Expression: "variables.name + '-long'"},
			{Name: "address", Expression: "ip('192.0.2.1')"},
		}
		for _, e := range expressions {
			p.Spec.Validations = append(p.Spec.Validations, admissionv1.Validation{Expression: e, MessageExpression: "'refused: ' + string(" + e + ")"})
		}
		return p
	}
	warned := 0
	for _, expression := range []string{
		// of both kinds
		"object.metadata.name == 'web'",
		"object.metadata.name == 5",
		"object.metadata.nmae == 'web'",
		"object.metadata.labels['app'] == 'web'",
		"object.metadata.labels.app == 'web'",
		"object.metadata.annotations['a'] > 5",
		"object.kind == 'Pod' && object.apiVersion.startsWith('v')",
		"object.metadata.creationTimestamp < timestamp('2026-01-01T00:00:00Z')",
		"object.metadata.creationTimestamp < '2026-01-01'",
		"object.metadata.ownerReferences.all(o, o.controller)",
		"object.metadata.ownerReferences.exists(o, o.uid == 7)",
		"object.metadata.managedFields[0].fieldsV1.foo == 1",
		"oldObject == null || object.metadata.uid == oldObject.metadata.uid",
		"has(object.metadata.deletionTimestamp)",
		"has(object.metadata.deleted)",
		// of one of them
		"object.spec.replicas <= 5",
		"object.spec.replicas <= 5.0",
		"object.spec.replicas == '5'",
		"object.spec.template.spec.containers.all(c, c.image.startsWith('registry.example.com/'))",
		"object.spec.template.spec.containers.all(c, c.imag != '')",
		"object.spec.containers.all(c, c.resources.limits['cpu'] == '1')",
		"object.spec.containers.all(c, quantity(c.resources.limits['cpu']).isLessThan(quantity('1')))",
		"object.spec.containers[0].ports[0].containerPort > 1024",
		"object.spec.containers[0].livenessProbe.httpGet.port == 80",
		"object.spec.volumes.exists(v, has(v.hostPath))",
		"object.spec.strategy.rollingUpdate.maxSurge == '10%'",
		"object.spec.selector.matchLabels.all(k, k != '')",
		"object.spec.overhead == {}",
		// parameters, variables, the request, the namespace, the authorizer
		"params.data['limit'] == 'x'",
		"params.data.limit == 5",
		"params.limit == 5",
		"params.binaryData['a'] == b'x'",
		"variables.name == 'web'",
		"variables.name == 5",
		"variables.longName.size() > 3",
		"variables.labels['a'] == 5",
		"variables.owners.all(o, o.anything == 1)",
		"variables.broken == 5",
		"variables.address.family() == 4",
		"variables.unknown == 1",
		"request.userInfo.groups.exists(g, g == 'admins')",
		"request.userInfo.extra['a'][0] == 'x'",
		"request.dryRun && request.operation == 'CREATE' && request.options.foo",
		"request.requestKind.version == 1",
		"request.uid == 'x'",
		"namespaceObject.metadata.labels['a'] == 'b' && namespaceObject.status.phase == 'Active'",
		"namespaceObject.metadata.managedFields.size() == 0",
		"namespaceObject.spec.finalizers[0] == 1",
		"authorizer.group('').resource('pods').namespace('a').check('create').allowed()",
		"authorizer.path('/healthz').check('get').reason() == ''",
		"authorizer.serviceAccount('a', 'b').group('').resource('pods').fieldSelector('a=b').check('get').errored()",
		"authorizer.resource('pods').check('create').allowed()",
		// the libraries
		"[1, 2].isSorted() && ['a', 'b'].min() == 'a' && [1.0].sum() == 1.0 && [1].indexOf(1) == 0",
		"['a'].sum() == 'a'",
		"isURL('a') && url('https://a').getHost() == 'a' && 'abc'.find('[a-z]+') == 'abc'",
		"format.dns1123Label().validate('a').hasValue()",
		"format.dns1123Labels().validate('a')",
		"cidr('10.0.0.0/8').containsIP(ip('10.0.0.1')) && cidr('10.0.0.0/8').prefixLength() == '8'",
		"semver('1.0.0').major() == 1 && semver('v1.0', true).isLessThan(semver('2.0.0'))",
		"sets.contains([1], [2]) && 'a,b'.split(',').join('-') == 'a-b' && [1, 2].transformMap(i, v, v > 1)[0]",
		"object.?metadata.?labels[?'a'].orValue('b') == 'b'",
		"timestamp('not a time') == object.metadata.creationTimestamp",
		"'a'.matches('(') || duration('5x') == duration('5s')",
		"[1, 'a'].size() == 2",
		"object.metadata.finalizers.distinct().size() == 1 && [3, 1].sort()[0] == 1 && lists.range(3).size() == 3",
		// no expressions of the language
		"object.metadata.name =",
		"object.",
		"1",
		"nothing == 1",
	} {
		p := policy(expression)
		var theirs []admissionv1.ExpressionWarning
		for _, w := range checker.Check(p) {
			w.Warning = counted.ReplaceAllString(w.Warning, "$1")
			theirs = append(theirs, w)
		}
		ours, err := policystatus.Check(p, kinds, read(configMap))
		if err != nil {
			t.Fatal(err)
		}
		for i := range ours {
			ours[i].Warning = strings.ReplaceAll(ours[i].Warning, "'params.", "'ConfigMap.")
		}
		warned += len(ours)
		if !slices.Equal(ours, theirs) {
			t.Errorf("%s:\nwarnings\n%v\nupstream's\n%v", expression, ours, theirs)
		}
	}
	if warned < 40 {
		t.Errorf("%d warnings, which are too few for a comparison", warned)
	}
	t.Logf("%d warnings", warned)
}
