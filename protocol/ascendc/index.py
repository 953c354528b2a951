"""The index: every class, function, alias and constant that the parsed sources declare.

Fills in `declarations`, where names are looked up. Nothing is lowered here; a declaration inside a
syntax error is kept and marked, so that only its use is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from ..errors import UnsupportedError
from .declarations import (
    AliasDecl,
    ClassDecl,
    ConstantDecl,
    FieldDecl,
    FunctionDecl,
    Index,
    Namespace,
    TemplateParameter,
    Templates,
    declared_name,
    flatten,
    function_declarator,
    parameters_of,
    part_name,
)
from .parse import SourceFile, Sources, named, text_of


def build_index(sources: Sources) -> Index:
    """Index all files; methods defined outside their class are attached to it."""
    builder = _Builder()
    for file in sources.files:
        builder.file(file)
    builder.attach_methods()
    builder.mark_hidden_parameters()
    return builder.index


_USING = re.compile(rb"\busing\s+(namespace\s)?\s*([\w:\s]+);")


_CONTAINERS = frozenset({"namespace_definition", "linkage_specification", "template_declaration"})


def _broken_itself(node: Node) -> bool:
    """Whether a namespace or the like has a syntax error outside the declarations in it."""
    body = node.child_by_field_name("body") or node
    return any(child.is_missing or child.type == "ERROR" for child in (*node.children, *body.children))


_NAMED = frozenset(
    {"class_specifier", "struct_specifier", "union_specifier", "enum_specifier", "enumerator",
     "alias_declaration", "namespace_definition", "qualified_identifier"}
)  # fmt: skip


def _names_declaration(leaf: Node) -> bool:
    """Whether ``leaf`` is (part of) the name of a declaration outside function bodies."""
    node, outer, found = leaf, leaf.parent, False
    while outer is not None and outer.type != "compound_statement":
        is_name = outer.type in _NAMED and outer.child_by_field_name("name") == node
        is_declarator = outer.type != "parameter_declaration" and node in outer.children_by_field_name(
            "declarator"
        )
        if not found and not is_name and not is_declarator and "declarator" not in outer.type:
            return False
        found = found or is_name or is_declarator
        node, outer = outer, outer.parent
    return found and outer is None


class _Builder:
    def __init__(self) -> None:
        self.index = Index()
        self.outside: list[tuple[FunctionDecl, list[Node], tuple[Templates, ...]]] = []
        self.found: list[FunctionDecl] = []

    def file(self, source: SourceFile) -> None:
        self.source = source
        self.broken: Node | None = None
        self.found = []
        if source.root.type == "ERROR":
            self.index.damaged.append((source, source.root))
        for match in _USING.finditer(source.prepared.text):
            names = tuple(part.strip() for part in match[2].decode().split("::") if part.strip())
            self.index.usings.add(names if match[1] else names[:-1])
        self.index.usings.discard(())
        pragma = re.search(rb"\b_Pragma\b", source.prepared.text)
        if pragma is not None:
            raise UnsupportedError("_Pragma", source.span_at(pragma.start()))
        self.refuse_macro_names(source)
        self.scope(source.root, ())
        self.entries(source)

    def mark_hidden_parameters(self) -> None:
        """Members of a base hide template parameters of the same name: such classes are refused."""
        classes = [decl for found in self.index.classes.values() for decl in found]
        members = {
            name
            for decl in classes
            for name in (*decl.constants, *decl.aliases, *decl.methods, *(f.name for f in decl.fields))
        }
        for decl in classes:
            hidden = sorted(members & {parameter.name for parameter in decl.templates})
            own = {parameter.name for parameter in decl.templates}
            for base in decl.bases:
                if own & set(re.findall(r"\w+", text_of(base))):
                    decl.unclear = f"its base {text_of(base)} depends on its template parameters"
            if decl.bases and hidden:
                decl.unclear = f"its template parameter {hidden[0]} has the name of a class member"

    def refuse_macro_names(self, source: SourceFile) -> None:
        """Refuse declarations whose name is a macro: nobody knows what they declare."""
        for offset, use in sorted(source.prepared.uses.items()):
            leaf = source.root.descendant_for_byte_range(offset, offset + len(use.name.encode()))
            if use.number is None and leaf is not None and _names_declaration(leaf):
                raise UnsupportedError(f"{use} as the name of a declaration", source.span_at(offset))

    # --- walking ----------------------------------------------------------------------------

    def scope(self, node: Node, namespace: Namespace) -> None:
        for child in named(node):
            self.declaration(child, namespace, ())

    def declaration(self, node: Node, namespace: Namespace, templates: tuple[Templates, ...]) -> None:
        if node.has_error and (node.type not in _CONTAINERS or _broken_itself(node)):
            self.index.damaged.append((self.source, node))
        match node.type:
            case "namespace_definition":
                name = text_of(node.child_by_field_name("name")).split("::")
                body = node.child_by_field_name("body")
                inner = (*namespace, *(part for part in name if part))
                if any(child.type == "inline" for child in node.children):
                    self.index.usings.add(inner)
                if body is not None:
                    self.scope(body, inner)
            case "linkage_specification":
                body = node.child_by_field_name("body")
                if body is not None and body.type == "declaration_list":
                    self.scope(body, namespace)
                elif body is not None:
                    self.declaration(body, namespace, templates)
            case "namespace_alias_definition":
                short = text_of(node.child_by_field_name("name"))
                self.index.namespace_aliases[short] = self.source.span_at(node.start_byte)
            case "template_declaration":
                parameters = self.templates(node)
                for child in named(node)[1:]:
                    self.declaration(child, namespace, (*templates, parameters))
            case "ERROR":
                outer, self.broken = self.broken, self.broken or node
                self.scope(node, namespace)
                self.broken = outer
            case "class_specifier" | "struct_specifier":
                self.klass(node, namespace, templates)
            case "enum_specifier":
                for constant in self.enumerators(node, namespace):
                    self.index.constants.setdefault(constant.name, []).append(constant)
            case "function_definition":
                self.function(node, namespace, templates)
            case "alias_declaration" | "type_definition":
                for alias in self.alias(node, namespace, templates):
                    self.index.aliases.setdefault(alias.name, []).append(alias)
            case "declaration":
                self.variable(node, namespace, templates)

    def templates(self, node: Node) -> Templates:
        parameters = node.child_by_field_name("parameters")
        return tuple(self.template(p) for p in named(parameters)) if parameters is not None else ()

    def template(self, node: Node) -> TemplateParameter:
        if "type_parameter" in node.type:
            name = node.child_by_field_name("name") or next(iter(named(node)), None)
            return TemplateParameter(text_of(name), None, node.child_by_field_name("default_type"))
        name = declared_name(node.child_by_field_name("declarator"))
        type_node = node.child_by_field_name("type")
        return TemplateParameter(text_of(name), type_node, node.child_by_field_name("default_value"))

    # --- classes ----------------------------------------------------------------------------

    def klass(self, node: Node, namespace: Namespace, templates: tuple[Templates, ...]) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is None or body is None:
            return
        own = templates[-1] if templates else ()
        decl = ClassDecl(part_name(name), namespace, self.source, node, own, self.broken)
        decl.specialised = name.type == "template_type"
        for clause in named(node):
            if clause.type == "base_class_clause":
                decl.bases = [b for b in named(clause) if b.type != "access_specifier"]
        self.index.classes.setdefault(decl.name, []).append(decl)
        for member in named(body):
            self.member(decl, member, ())
        if any(member.type == "using_declaration" for member in named(body)):
            decl.unclear = "it brings names in with `using`"

    def member(self, decl: ClassDecl, node: Node, templates: tuple[Templates, ...]) -> None:
        match node.type:
            case "template_declaration":
                parameters = self.templates(node)
                for child in named(node)[1:]:
                    self.member(decl, child, (*templates, parameters))
            case "function_definition":
                function = self.function_decl(node, decl.scope, templates)
                if function is not None:
                    decl.methods.setdefault(function.name, []).append(function)
            case "alias_declaration" | "type_definition":
                for alias in self.alias(node, decl.scope, templates):
                    decl.aliases[alias.name] = alias
            case "enum_specifier":
                for constant in self.enumerators(node, decl.scope):
                    decl.constants[constant.name] = constant
            case "class_specifier" | "struct_specifier":
                self.klass(node, decl.scope, templates)
            case "field_declaration" | "declaration":
                self.fields(decl, node)

    def fields(self, decl: ClassDecl, node: Node) -> None:
        type_node = node.child_by_field_name("type")
        if type_node is not None and type_node.child_by_field_name("body") is not None:
            self.member(decl, type_node, ())
        words = {text_of(child) for child in named(node)}
        for declarator, default in _declarators(node):
            if declarator.type == "function_declarator":
                name = text_of(declared_name(declarator))
                decl.declared.setdefault(name, []).append(declarator)
                continue
            inner = function_declarator(declarator)
            if inner is not None:
                decl.declared.setdefault(text_of(declared_name(inner)), []).append(inner)
                continue
            name = text_of(declared_name(declarator))
            if "static" in words or "constexpr" in words:
                decl.constants[name] = ConstantDecl(
                    name, decl.scope, self.source, node, (), self.broken, type_node, default
                )
            else:
                bits = any(child.type == "bitfield_clause" for child in named(node))
                decl.fields.append(
                    FieldDecl(
                        name, decl.scope, self.source, node, (), self.broken,
                        type_node, declarator, default, bits,
                    )
                )  # fmt: skip

    def enumerators(self, node: Node, namespace: Namespace) -> Iterator[ConstantDecl]:
        body = node.child_by_field_name("body")
        enum = text_of(node.child_by_field_name("name"))
        scoped = any(child.type in ("class", "struct") for child in node.children)
        inside = (*namespace, enum) if scoped else namespace
        base, offset = None, 0
        for item in named(body) if body is not None else ():
            if item.type != "enumerator":
                continue
            value = item.child_by_field_name("value")
            base, offset = (value, 0) if value is not None else (base, offset)
            name = text_of(item.child_by_field_name("name"))
            yield ConstantDecl(
                name, inside, self.source, item, (), self.broken,
                node.child_by_field_name("base"), base, offset, enum,
            )  # fmt: skip
            offset += 1

    # --- functions and others ---------------------------------------------------------------

    def function_decl(
        self, node: Node, namespace: Namespace, templates: tuple[Templates, ...]
    ) -> FunctionDecl | None:
        declarator = function_declarator(node)
        body = node.child_by_field_name("body")
        if declarator is None or body is None:
            return None
        parts = flatten(declared_name(declarator))
        if not parts:
            return None
        words = {text_of(child) for child in node.children}
        own = templates[-1] if templates else ()
        return FunctionDecl(
            part_name(parts[-1]), namespace, self.source, node, own, self.broken,
            "static" in words, "virtual" in words,
        )  # fmt: skip

    def function(self, node: Node, namespace: Namespace, templates: tuple[Templates, ...]) -> None:
        function = self.function_decl(node, namespace, templates)
        if function is None:
            return
        self.found.append(function)
        parts = flatten(declared_name(function.declarator))
        if len(parts) > 1:
            self.outside.append((function, parts[:-1], templates))
        else:
            self.index.functions.setdefault(function.name, []).append(function)

    def attach_methods(self) -> None:
        """Give functions written ``Class<T>::name`` to their class, the others to their namespace."""
        for function, scope, templates in self.outside:
            names = [part_name(part) for part in scope]
            classes = self.index.find(self.index.classes, names[-1], names[:-1], function.namespace)
            if not classes:
                function.namespace = (*function.namespace, *names)
                self.index.functions.setdefault(function.name, []).append(function)
                continue
            owner = classes[0]
            function.namespace = owner.scope
            if owner.templates:
                function.class_templates = templates[0] if templates else ()
                function.templates = templates[1] if len(templates) > 1 else ()
            self.declared_part(owner, function)
            owner.methods.setdefault(function.name, []).append(function)

    def declared_part(self, owner: ClassDecl, function: FunctionDecl) -> None:
        """The declaration inside the class: it alone has defaults and says ``static``."""
        count = len(function.parameters)
        matching = [d for d in owner.declared.get(function.name, ()) if len(parameters_of(d)) == count]
        if len(matching) == 1:
            function.declared, function.declared_in = matching[0], owner.source
            statement = matching[0].parent
            if statement is not None:
                words = {text_of(child) for child in statement.children}
                function.static, function.virtual = "static" in words, "virtual" in words

    def alias(
        self, node: Node, namespace: Namespace, templates: tuple[Templates, ...]
    ) -> Iterator[AliasDecl]:
        own = templates[-1] if templates else ()
        type_node = node.child_by_field_name("type")
        if node.type == "alias_declaration":
            name = text_of(node.child_by_field_name("name"))
            yield AliasDecl(name, namespace, self.source, node, own, self.broken, type_node)
            return
        for declarator in node.children_by_field_name("declarator"):
            name = text_of(declared_name(declarator))
            if type_node is not None and type_node.child_by_field_name("body") is not None:
                self.klass_of_typedef(name, type_node, namespace)
            else:
                yield AliasDecl(name, namespace, self.source, node, own, self.broken, type_node, declarator)

    def klass_of_typedef(self, name: str, node: Node, namespace: Namespace) -> None:
        """``typedef struct { … } name;``."""
        body = node.child_by_field_name("body")
        decl = ClassDecl(name, namespace, self.source, node, (), self.broken)
        self.index.classes.setdefault(name, []).append(decl)
        for member in named(body) if body is not None else ():
            self.member(decl, member, ())

    def variable(self, node: Node, namespace: Namespace, templates: tuple[Templates, ...]) -> None:
        type_node = node.child_by_field_name("type")
        if type_node is not None and type_node.child_by_field_name("body") is not None:
            self.declaration(type_node, namespace, templates)
        words = {text_of(child) for child in named(node)}
        if not words & {"const", "constexpr"}:
            return
        for declarator in node.children_by_field_name("declarator"):
            value = declarator.child_by_field_name("value")
            if declarator.type == "init_declarator" and value is not None:
                name = text_of(declared_name(declarator))
                self.index.constants.setdefault(name, []).append(
                    ConstantDecl(name, namespace, self.source, node, (), self.broken, type_node, value)
                )

    # --- entries ----------------------------------------------------------------------------

    def entries(self, source: SourceFile) -> None:
        """Match each ``__global__`` with the function it stands before."""
        text = source.prepared.text
        functions = sorted(self.found, key=lambda f: f.declarator.start_byte)
        for offset in source.prepared.entries:
            function = next((f for f in functions if f.declarator.start_byte > offset), None)
            between = text[offset : function.declarator.start_byte] if function else text[offset:]
            if function is not None and not any(mark in between for mark in b";{}"):
                if function not in self.index.entries:
                    self.index.entries.append(function)
            elif _is_definition(between):
                self.index.lost.append((source, source.root))


def _is_definition(text: bytes) -> bool:
    """Whether a body follows, rather than the ``;`` of a mere declaration."""
    opening, end = text.find(b"{"), text.find(b";")
    return opening >= 0 and (end < 0 or opening < end)


def _declarators(node: Node) -> Iterator[tuple[Node, Node | None]]:
    """The declarators of a member declaration, each with its default initialiser."""
    pending: Node | None = None
    for index, child in enumerate(node.children):
        field_name = node.field_name_for_child(index)
        if field_name == "declarator":
            if pending is not None:
                yield pending, None
            pending = child
        elif field_name == "default_value" and pending is not None:
            yield pending, child
            pending = None
    if pending is not None:
        yield pending, None
