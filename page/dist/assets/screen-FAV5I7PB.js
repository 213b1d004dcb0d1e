import{d as e}from"./chunk-V5KZCUB3.js";function o(r){return e("main",{class:"page","aria-label":"Graphs",children:e("h1",{children:"Graphs"})})}export{o as GraphsScreen};
