// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package validatingadmissionpolicystatus

import (
	"fmt"

	"github.com/google/cel-go/cel"
)

// The types that Kubernetes adds to the language. Source: k8s.io/apiserver/pkg/cel and
// k8s.io/apiserver/pkg/cel/library.
var (
	urlType      = cel.ObjectType("kubernetes.URL")
	quantityType = cel.ObjectType("kubernetes.Quantity")
	semverType   = cel.ObjectType("kubernetes.Semver")
	formatType   = cel.ObjectType("kubernetes.NamedFormat")
	ipType       = cel.OpaqueType("net.IP")
	cidrType     = cel.OpaqueType("net.CIDR")

	authorizerType    = cel.ObjectType("kubernetes.authorization.Authorizer")
	pathCheckType     = cel.ObjectType("kubernetes.authorization.PathCheck")
	groupCheckType    = cel.ObjectType("kubernetes.authorization.GroupCheck")
	resourceCheckType = cel.ObjectType("kubernetes.authorization.ResourceCheck")
	decisionType      = cel.ObjectType("kubernetes.authorization.Decision")
)

// signature is one form of a function: the types of its arguments and of its result. A member is
// called on its first argument.
type signature struct {
	name      string
	member    bool
	arguments []*cel.Type
	result    *cel.Type
}

func function(name string, result *cel.Type, arguments ...*cel.Type) signature {
	return signature{name, false, arguments, result}
}

func member(name string, result *cel.Type, arguments ...*cel.Type) signature {
	return signature{name, true, arguments, result}
}

// signatures returns the functions that Kubernetes adds to the language.
// Source: k8s.io/apiserver/pkg/cel/library.
func signatures() []signature {
	var (
		text, yes, number = cel.StringType, cel.BoolType, cel.IntType
		texts             = cel.ListType(text)
		element           = cel.TypeParamType("A")
	)
	all := []signature{
		// URLs
		function("url", urlType, text),
		function("isURL", yes, text),
		member("getScheme", text, urlType),
		member("getHost", text, urlType),
		member("getHostname", text, urlType),
		member("getPort", text, urlType),
		member("getEscapedPath", text, urlType),
		member("getQuery", cel.MapType(text, texts), urlType),
		// regular expressions
		member("find", text, text, text),
		member("findAll", texts, text, text),
		member("findAll", texts, text, text, number),
		// lists
		member("indexOf", number, cel.ListType(element), element),
		member("lastIndexOf", number, cel.ListType(element), element),
		member("includes", yes, cel.DynType, cel.DynType),
		// quantities
		function("quantity", quantityType, text),
		function("isQuantity", yes, text),
		function("sign", number, quantityType),
		member("isGreaterThan", yes, quantityType, quantityType),
		member("isLessThan", yes, quantityType, quantityType),
		member("compareTo", number, quantityType, quantityType),
		member("asApproximateFloat", cel.DoubleType, quantityType),
		member("asInteger", number, quantityType),
		member("isInteger", yes, quantityType),
		member("add", quantityType, quantityType, quantityType),
		member("add", quantityType, quantityType, number),
		member("sub", quantityType, quantityType, quantityType),
		member("sub", quantityType, quantityType, number),
		// versions
		function("semver", semverType, text),
		function("semver", semverType, text, yes),
		function("isSemver", yes, text),
		function("isSemver", yes, text, yes),
		member("isGreaterThan", yes, semverType, semverType),
		member("isLessThan", yes, semverType, semverType),
		member("compareTo", number, semverType, semverType),
		member("major", number, semverType),
		member("minor", number, semverType),
		member("patch", number, semverType),
		// addresses
		function("ip", ipType, text),
		function("isIP", yes, text),
		function("ip.isCanonical", yes, text),
		function("string", text, ipType),
		member("family", number, ipType),
		member("isUnspecified", yes, ipType),
		member("isLoopback", yes, ipType),
		member("isLinkLocalMulticast", yes, ipType),
		member("isLinkLocalUnicast", yes, ipType),
		member("isGlobalUnicast", yes, ipType),
		function("cidr", cidrType, text),
		function("isCIDR", yes, text),
		function("string", text, cidrType),
		member("containsIP", yes, cidrType, text),
		member("containsIP", yes, cidrType, ipType),
		member("containsCIDR", yes, cidrType, text),
		member("containsCIDR", yes, cidrType, cidrType),
		member("ip", ipType, cidrType),
		member("prefixLength", number, cidrType),
		member("masked", cidrType, cidrType),
		// formats
		function("format.named", cel.OptionalType(formatType), text),
		member("validate", cel.OptionalType(texts), formatType, text),
		// authorization
		member("path", pathCheckType, authorizerType, text),
		member("group", groupCheckType, authorizerType, text),
		member("serviceAccount", authorizerType, authorizerType, text, text),
		member("resource", resourceCheckType, groupCheckType, text),
		member("subresource", resourceCheckType, resourceCheckType, text),
		member("namespace", resourceCheckType, resourceCheckType, text),
		member("name", resourceCheckType, resourceCheckType, text),
		member("fieldSelector", resourceCheckType, resourceCheckType, text),
		member("labelSelector", resourceCheckType, resourceCheckType, text),
		member("check", decisionType, pathCheckType, text),
		member("check", decisionType, resourceCheckType, text),
		member("errored", yes, decisionType),
		member("error", text, decisionType),
		member("allowed", yes, decisionType),
		member("reason", text, decisionType),
	}
	for _, of := range []*cel.Type{number, cel.UintType, cel.DoubleType, cel.DurationType} {
		all = append(all, member("sum", of, cel.ListType(of)))
	}
	for _, of := range []*cel.Type{number, cel.UintType, cel.DoubleType, yes, cel.DurationType, cel.TimestampType, text, cel.BytesType} {
		all = append(all, member("isSorted", yes, cel.ListType(of)), member("max", of, cel.ListType(of)), member("min", of, cel.ListType(of)))
	}
	for _, format := range []string{
		"dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "dns1123LabelPrefix", "dns1123SubdomainPrefix",
		"dns1035LabelPrefix", "labelValue", "uri", "uuid", "byte", "date", "datetime",
	} {
		all = append(all, function("format."+format, formatType))
	}
	return all
}

// declare declares the functions of Kubernetes. They cannot be called.
func declare() []cel.EnvOption {
	var options []cel.EnvOption
	for i, s := range signatures() {
		id := fmt.Sprintf("%s_%d", s.name, i)
		overload := cel.Overload(id, s.arguments, s.result)
		if s.member {
			overload = cel.MemberOverload(id, s.arguments, s.result)
		}
		options = append(options, cel.Function(s.name, overload))
	}
	return options
}
