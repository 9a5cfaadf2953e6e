// The server's interface as a page, from its OpenAPI schema.

import { examples } from "./try_it.js";

const schema = await (await fetch("openapi.json")).json();

document.querySelector("#operations").prepend(
  ...Object.entries(schema.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => article(path, method, operation)),
  ),
);

function article(path, method, operation) {
  const name = `${method.toUpperCase()} ${path}`;
  const found = element("article", element("h2", code(name)));
  if (operation.description) {
    found.append(element("p", operation.description));
  }
  if (operation.parameters) {
    found.append(element("h3", "In the path"), table(`Path of ${name}`, ["name", "type"], operation.parameters.map(
      (parameter) => [code(parameter.name), typeOf(parameter.schema)],
    )));
  }
  const json = operation.requestBody?.content["application/json"];
  found.append(...examples(path, method, operation, resolved(json?.schema)));
  for (const [mediaType, body] of Object.entries(operation.requestBody?.content ?? {})) {
    found.append(element("h3", "Body, ", code(mediaType)), fields(`Body of ${name}`, resolved(body.schema)));
  }
  found.append(element("h3", "Answers"), table(`Answers of ${name}`, ["status", "what", "type"], Object.entries(
    operation.responses,
  ).map(([status, answer]) => [
    code(status), answer.description, Object.keys(answer.content ?? {}).join(", "),
  ])));
  return found;
}

function fields(label, body) {
  const required = new Set(body.required);
  const ordered = Object.entries(body.properties ?? {}).sort(
    ([one], [other]) => required.has(other) - required.has(one),
  );
  return table(label, ["name", "type", "default", "what"], ordered.map(
    ([name, field]) => [
      code(name),
      typeOf(field),
      required.has(name) ? "required" : JSON.stringify(field.default ?? null),
      field.description ?? "",
    ],
  ));
}

function typeOf(field) {
  const found = resolved(field);
  if (found.anyOf) {
    return found.anyOf.map(typeOf).join(" or ");
  }
  if (found.enum) {
    return found.enum.join(", ");
  }
  if (found.properties) {
    return `{${Object.keys(found.properties).join(", ")}}`;
  }
  const least = found.minimum ?? found.minLength;
  const most = found.maximum ?? found.maxLength;
  const span = most === undefined ? "" : `, ${least ?? 0} to ${most}`;
  return (found.const ?? found.type ?? "any") + span;
}

function resolved(found) {
  if (!found?.$ref) {
    return found ?? {};
  }
  return found.$ref.slice(2).split("/").reduce((place, name) => place[name], schema);
}

function table(label, heads, rows) {
  const head = element("tr", ...heads.map((text) => {
    const cell = element("th", text);
    cell.scope = "col";
    return cell;
  }));
  const body = rows.map((cells) => element("tr", ...cells.map((cell) => element("td", cell))));
  const scroll = element("div", element("table", element("thead", head), element("tbody", ...body)));
  scroll.className = "scroll";
  scroll.tabIndex = 0;
  scroll.role = "region";
  scroll.ariaLabel = label;
  return scroll;
}

function code(text) {
  return element("code", text);
}

function element(name, ...children) {
  const made = document.createElement(name);
  made.append(...children);
  return made;
}
